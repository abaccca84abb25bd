//! What is wrong is refused in one line with a hint, by a directory and by a server alike, and changes nothing.

mod harness;

use harness::{Data, Ran, Server, binary, run, run_with_input};

/// Runs a test on a stream `clicks` of three shards, without a server and with one.
fn both_ways(test: impl Fn(&Data)) {
    for serves in [false, true] {
        let data = Data::new();
        let _server: Option<Server> = serves.then(|| data.serve());
        data.stream(&["create", "clicks", "--shards", "3"]).succeeded();
        let before = data.stream(&["describe", "clicks", "--json"]).json();
        test(&data);
        assert_eq!(data.stream(&["describe", "clicks", "--json"]).json(), before, "nothing has changed");
    }
}

#[test]
fn names_of_streams() {
    both_ways(|data| {
        let long = "x".repeat(129);
        for (name, reason) in [
            ("a/b", "`/`"),
            ("..", "exists"),
            (long.as_str(), "129 characters"),
            ("bell\u{7}", "\\u{7}"),
            ("esc\u{1b}[31m", "\\u{1b}"),
            ("", "empty"),
            ("ä", "\\u{e4}"),
            ("a b", "` `"),
        ] {
            if name == ".." {
                // Dots are allowed: a name is never a path.
                data.stream(&["create", name]).succeeded();
                data.stream(&["create", name]).failed(2, &[reason]);
                data.stream(&["rm", name, "--yes"]).succeeded();
                continue;
            }
            for arguments in [
                &["create", name][..],
                &["describe", name],
                &["put", name, "x"],
                &["tail", name],
                &["rm", name, "--yes"],
                &["retention", name, "7d"],
            ] {
                let ran = data.stream(arguments).failed(2, &[reason]);
                assert!(!ran.stderr.contains(['\u{7}', '\u{1b}']), "{ran:#?}");
            }
        }
    });
}

#[test]
fn unknown_streams_and_shards() {
    both_ways(|data| {
        let shard = "shardId-000000000000";
        for arguments in [
            &["describe", "nothing"][..],
            &["put", "nothing", "x"],
            &["tail", "nothing"],
            &["split", "nothing", shard],
            &["split", "nothing", shard, "--at", "7"],
            &["merge", "nothing", shard, "shardId-000000000001"],
            &["retention", "nothing", "7d"],
            &["rm", "nothing", "--yes"],
        ] {
            data.stream(arguments).failed(2, &["stream `nothing` does not exist", "stream ls"]);
        }
        let unknown = "shardId-000000000099";
        for arguments in [
            &["split", "clicks", unknown][..],
            &["split", "clicks", unknown, "--at", "7"],
            &["merge", "clicks", shard, unknown],
            &["tail", "clicks", "--shard", unknown],
        ] {
            data.stream(arguments).failed(2, &[unknown, "stream describe"]);
        }
        data.stream(&["split", "clicks", "no/shard"]).failed(2, &["shard id"]);
        data.stream(&["create", "clicks"]).failed(2, &["exists already", "stream rm"]);
    });
}

#[test]
fn splits_and_merges() {
    both_ways(|data| {
        let [first, second, third] = ["shardId-000000000000", "shardId-000000000001", "shardId-000000000002"];
        for at in ["0", "340282366920938463463374607431768211455"] {
            data.stream(&["split", "clicks", first, "--at", at]).failed(2, &["cannot be split at", at]);
        }
        for at in ["x", "-1", "340282366920938463463374607431768211456", ""] {
            let at = format!("--at={at}");
            data.stream(&["split", "clicks", first, &at]).failed(2, &["hash key"]);
        }
        data.stream(&["merge", "clicks", first, third]).failed(2, &["not neighbours", first, third]);
        data.stream(&["merge", "clicks", second, second]).failed(2, &["not neighbours"]);
    });
}

#[test]
fn closed_shards() {
    for serves in [false, true] {
        let data = Data::new();
        let _server = serves.then(|| data.serve());
        data.stream(&["create", "clicks", "--shards", "2"]).succeeded();
        let [first, second] = ["shardId-000000000000", "shardId-000000000001"];
        // One key is split off, and a range of one key cannot be split.
        data.stream(&["split", "clicks", first, "--at", "1"]).succeeded();
        data.stream(&["split", "clicks", first]).failed(2, &[first, "closed"]);
        data.stream(&["split", "clicks", first, "--at", "5"]).failed(2, &[first, "closed"]);
        data.stream(&["merge", "clicks", first, second]).failed(2, &[first, "closed"]);
        for arguments in [
            &["split", "clicks", "shardId-000000000002"][..],
            &["split", "clicks", "shardId-000000000002", "--at", "0"],
        ] {
            data.stream(arguments).failed(2, &["single"]);
        }
    }
}

#[test]
fn options_of_streams() {
    both_ways(|data| {
        for retention in ["23h", "366d", "0s"] {
            data.stream(&["create", "new", "--retention", retention]).failed(2, &["24 to 8760 hours"]);
            data.stream(&["retention", "clicks", retention]).failed(2, &["24 to 8760 hours"]);
        }
        for shards in ["0", "10001"] {
            data.stream(&["create", "new", "--shards", shards]).failed(2, &["10000"]);
        }
        for arguments in [
            &["create", "new", "--retention", "soon"][..],
            &["create", "new", "--shards", "many"],
            &["retention", "clicks", "7"],
            &["tail", "clicks", "--limit", "-1"],
            &["put", "clicks", "x", "--key", "a", "--key-field", "b"],
            &["put", "clicks", "x", "--lines"],
            &["nothing"],
            &["describe"],
        ] {
            let ran = data.stream(arguments);
            assert_eq!(ran.code, 2, "{ran:#?}");
            assert!(ran.stderr.starts_with("error: "), "{ran:#?}");
        }
        data.stream(&["tail", "clicks", "--from", "yesterday"]).failed(2, &["yesterday", "trim-horizon"]);
        data.stream(&["tail", "clicks", "--from", "007"]).failed(2, &["007", "zero"]);
    });
}

#[test]
fn records_and_keys() {
    both_ways(|data| {
        let long = "k".repeat(257);
        data.stream(&["put", "clicks", "x", "--key", &long]).failed(2, &["partition key has 257 characters"]);
        data.stream(&["put", "clicks", "x", "--key", ""]).failed(2, &["partition key has 0 characters"]);

        let oversize = vec![b'x'; (10 << 20) + 1];
        let put = |arguments: &[&str], input: &[u8]| run_with_input(data.command(arguments), input);
        put(&["put", "clicks", "--file", "-", "--key", "k"], &oversize).failed(2, &["10485760"]);
        let ran = put(&["put", "clicks", "--lines"], &oversize).failed(2, &["line 1", "10485760"]);
        assert!(ran.stderr.contains("0 records stored"), "{ran:#?}");

        put(&["put", "clicks", "--key-field", "user"], b"{\"user\":\"a\"}\nplain\n")
            .failed(2, &["line 2", "not a JSON object", "1 record stored"]);
        put(&["put", "clicks", "--key-field", "user"], b"{\"other\":1}\n").failed(2, &["line 1", "`user`"]);
        data.stream(&["put", "clicks", "--file", "/no/such/file"]).failed(1, &["/no/such/file"]);
    });
}

#[test]
fn a_removal_needs_a_yes() {
    both_ways(|data| {
        data.stream(&["rm", "clicks"]).failed(2, &["confirmation", "--yes"]);
    });
}

#[test]
fn json_errors_are_json() {
    both_ways(|data| {
        let error = |ran: Ran, code: i32| {
            assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{ran:#?}");
            let json: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
            assert!(json["error"]["message"].is_string() && json["error"]["hint"].is_string(), "{json}");
            json["error"]["code"].as_str().unwrap().to_owned()
        };
        assert_eq!(error(data.stream(&["describe", "nothing", "--json"]), 2), "stream_not_found");
        assert_eq!(error(data.stream(&["create", "clicks", "--json"]), 2), "stream_exists");
        assert_eq!(error(data.stream(&["create", "a/b", "--json"]), 2), "invalid");
        assert_eq!(error(data.stream(&["no-such-command", "--json"]), 2), "usage");
        assert_eq!(error(data.stream(&["rm", "clicks", "--json"]), 2), "usage");
    });
}

#[test]
fn a_missing_directory_is_not_made_by_reading() {
    let data = Data::new();
    for arguments in [&["ls"][..], &["describe", "clicks"], &["tail", "clicks"], &["put", "clicks", "x"]] {
        data.stream(arguments).failed(2, &["no data directory at", "anabranch up", "--data"]);
        assert!(!data.path().exists());
    }
    // A folder that holds something else is left alone.
    std::fs::create_dir(data.path()).unwrap();
    data.stream(&["ls"]).failed(2, &["no data directory at"]);
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    for place in [file.join("data"), file] {
        let mut command = binary();
        command.args(["stream", "create", "clicks", "--data"]).arg(&place);
        run(command).failed(1, &[&place.display().to_string()]);
    }
}

#[test]
fn a_directory_of_the_future_is_refused() {
    let data = Data::new();
    data.stream(&["create", "clicks"]).succeeded();
    let format = data.path().join("FORMAT");
    let line = "anabranch format 99 segment_bytes 67108864";
    std::fs::write(&format, format!("{line} checksum {:08x}\n", crc32(line.as_bytes())).repeat(2)).unwrap();
    data.stream(&["ls"]).failed(2, &["format 99"]);
    let mut command = binary();
    command.args(["up", "--listen", "127.0.0.1:0", "--monitor", "127.0.0.1:0", "--data"]).arg(data.path());
    run(command).failed(2, &["format 99"]);
}

/// The checksum of the file `FORMAT`, so that this test needs no crate for one line.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |mut sum, byte| {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
        }
        sum
    })
}

#[test]
fn a_directory_in_use_by_a_command_is_named() {
    let data = Data::new();
    data.stream(&["create", "clicks"]).succeeded();
    // A command that waits for its input holds the directory meanwhile.
    let mut command = data.command(["put", "clicks", "--lines"]);
    let mut holder = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = holder.stdin.take().unwrap();
    let pid = holder.id().to_string();
    // A command that came earlier would take the lock from under the holder, so wait until the lock names it.
    let lock = data.path().join("LOCK");
    let names_holder = || std::fs::read_to_string(&lock).unwrap().contains(&format!("pid {pid}\n"));
    assert!((0..1_000_000).any(|_| names_holder()), "the holder never has the lock");
    data.stream(&["ls"]).failed(1, &[&pid, "anabranch stream put", "anabranch up"]);
    std::io::Write::write_all(&mut stdin, b"stored anyway\n").unwrap();
    drop(stdin);
    harness::finish(holder).succeeded();
    assert_eq!(data.stream(&["tail", "clicks"]).succeeded().stdout, "stored anyway\n");
}
