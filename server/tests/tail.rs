//! `stream tail`: where it starts, how it goes on, when it ends.

mod harness;

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc;

use harness::{Data, PATIENCE, Server, http};
use rustix::process::{Pid, Signal, kill_process};

/// A `tail` that runs, and its lines as they come.
struct Tail {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Tail {
    fn start(data: &Data, arguments: &[&str]) -> Self {
        let mut child =
            data.command([&["tail"][..], arguments].concat()).spawn().expect("the binary is there");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = mpsc::sync_channel(10_000);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Tail { child, lines }
    }

    #[track_caller]
    fn next(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line comes in time")
    }

    fn stop(self) -> i32 {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it runs");
        harness::finish(self.child).code
    }
}

fn served(shards: &str) -> (Data, Server) {
    let data = Data::new();
    let server = data.serve();
    data.stream(&["create", "clicks", "--shards", shards]).succeeded();
    (data, server)
}

fn wait_for_followers(server: &Server, count: usize) {
    let line = format!("anabranch_engine_followers {count}\n");
    let followed = (0..10_000).any(|_| http::get(server.monitor, "/metrics", &[]).body.contains(&line));
    assert!(followed, "there are never {count} followers");
}

#[test]
fn it_follows_through_splits_and_merges_in_order() {
    let (data, _server) = served("1");
    let tail = Tail::start(&data, &["clicks"]);
    let put = |text: &str| {
        data.stream(&["put", "clicks", text, "--key", "k"]).succeeded();
    };
    put("0");
    assert_eq!(tail.next(), "0");
    data.stream(&["split", "clicks", "shardId-000000000000"]).succeeded();
    put("1");
    assert_eq!(tail.next(), "1");
    data.stream(&["merge", "clicks", "shardId-000000000001", "shardId-000000000002"]).succeeded();
    put("2");
    data.stream(&["split", "clicks", "shardId-000000000003"]).succeeded();
    put("3");
    assert_eq!([tail.next(), tail.next()], ["2", "3"]);
    assert_eq!(tail.stop(), 130);

    // Read afterwards, the order is the same: no child before its parents.
    let ran = data.stream(&["tail", "clicks", "--no-follow"]).succeeded();
    assert_eq!(ran.stdout, "0\n1\n2\n3\n");
}

#[test]
fn latest_shows_only_what_comes_later() {
    let (data, server) = served("2");
    data.put_lines("clicks", "old\n").succeeded();
    let tail = Tail::start(&data, &["clicks", "--from", "latest"]);
    wait_for_followers(&server, 2);
    data.stream(&["split", "clicks", "shardId-000000000000"]).succeeded();
    data.put_lines("clicks", "new\n").succeeded();
    assert_eq!(tail.next(), "new");
    assert_eq!(tail.stop(), 130);
}

#[test]
fn it_starts_where_it_is_told() {
    let (data, _server) = served("1");
    data.put_lines("clicks", "a\nb\nc\n").succeeded();
    let records = data.stream(&["tail", "clicks", "--no-follow", "--json"]).json_lines();
    let from = |start: &str| {
        let ran = data.stream(&["tail", "clicks", "--no-follow", "--from", start]).succeeded();
        ran.stdout.replace('\n', "")
    };
    assert_eq!(from("trim-horizon"), "abc");
    assert_eq!(from("latest"), "");
    assert_eq!(from(records[1]["sequence"].as_str().unwrap()), "bc");
    assert_eq!(from(records[0]["arrival"].as_str().unwrap()), "abc");
    assert_eq!(from("10m ago"), "abc");
    assert_eq!(from("1970-01-01T00:00:00Z"), "abc");
    assert_eq!(from("2100-01-01T00:00:00Z"), "");
}

#[test]
fn it_stops_at_its_limit_and_at_the_end_of_its_shard() {
    let (data, _server) = served("1");
    data.put_lines("clicks", "a\nb\nc\n").succeeded();
    assert_eq!(data.stream(&["tail", "clicks", "--limit", "2"]).succeeded().stdout, "a\nb\n");
    assert_eq!(data.stream(&["tail", "clicks", "--limit", "0"]).succeeded().stdout, "");
    data.stream(&["split", "clicks", "shardId-000000000000"]).succeeded();
    let ran = data.stream(&["tail", "clicks", "--shard", "shardId-000000000000"]).succeeded();
    assert_eq!(ran.stdout, "a\nb\nc\n");
    assert!(ran.stderr.contains("shardId-000000000001 and shardId-000000000002"), "{ran:#?}");
}

#[test]
fn many_shards_are_polled() {
    let (data, _server) = served("200");
    let lines: String = (0..1_000).map(|number| format!("{number}\n")).collect();
    data.put_lines("clicks", &lines).succeeded();
    let tail = Tail::start(&data, &["clicks"]);
    let mut seen: Vec<u32> = (0..1_000).map(|_| tail.next().parse().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..1_000).collect::<Vec<u32>>());
    let more: String = (1_000..1_500).map(|number| format!("{number}\n")).collect();
    data.put_lines("clicks", &more).succeeded();
    let mut seen: Vec<u32> = (1_000..1_500).map(|_| tail.next().parse().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen, (1_000..1_500).collect::<Vec<u32>>());
    assert_eq!(tail.stop(), 130);
}

#[test]
fn it_goes_on_after_a_restart_of_the_server() {
    let (data, server) = served("1");
    let tail = Tail::start(&data, &["clicks"]);
    data.put_lines("clicks", "before\n").succeeded();
    assert_eq!(tail.next(), "before");
    let listen = server.listen.to_string();
    server.stop().succeeded();
    let _server = Server::spawn(
        harness::binary()
            .args(["up", "--listen", &listen, "--monitor", "127.0.0.1:0", "--data"])
            .arg(data.path()),
    );
    data.put_lines("clicks", "after\n").succeeded();
    assert_eq!(tail.next(), "after");
    assert_eq!(tail.stop(), 130);
}

#[test]
fn without_a_server_it_ends_with_a_note() {
    let data = Data::new();
    data.stream(&["create", "clicks"]).succeeded();
    data.put_lines("clicks", "a\n").succeeded();
    let ran = data.stream(&["tail", "clicks"]).succeeded();
    assert_eq!(ran.stdout, "a\n");
    assert!(ran.stderr.starts_with("note: no server"), "{ran:#?}");
    let ran = data.stream(&["tail", "clicks", "--no-follow"]).succeeded();
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    for serves in [false, true] {
        let data = Data::new();
        let _server = serves.then(|| data.serve());
        data.stream(&["create", "clicks"]).succeeded();
        let lines: String = (0..20_000).map(|number| format!("{number}\n")).collect();
        data.put_lines("clicks", &lines).succeeded();
        let mut child = data.command(["tail", "clicks"]).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "0\n");
        drop(stdout);
        let ran = harness::finish(child);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:#?}");
    }
}
