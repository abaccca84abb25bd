//! Telemetry on servers of AWS's protocols that we did not write, with the flow as it is: queues and tables of moto, streams of
//! kinesis-mock.

mod faults;
#[path = "../harness/mod.rs"]
mod harness;
mod ledger;
#[path = "../../../aws/tests/peer/mod.rs"]
mod peer;
mod scaler;

use std::process::Command;

use harness::bot::Bot;
use harness::telemetry::{Place, complete, flow};
use harness::{binary, run};
use peer::Peer;

/// A command with no setting of AWS but these.
fn on(moto: &str, mock: &str, arguments: &[&str]) -> Command {
    let mut command = binary();
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(name);
        }
    }
    command.env("HOME", "/nonexistent").env("AWS_REGION", "us-east-1");
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", "very secret");
    command.env("AWS_ENDPOINT_URL", moto).env("AWS_ENDPOINT_URL_KINESIS", mock);
    command.args(arguments).args(["--engine", "aws"]);
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_arrives_once_and_in_order_on_servers_of_others() {
    let (moto, mock) = (Peer::moto().await, Peer::kinesis_mock().await);
    let [moto_url, mock_url] = [&moto, &mock].map(|peer| format!("http://{}", peer.address()));
    let on = |arguments: &[&str]| on(&moto_url, &mock_url, arguments);
    for queue in ["submissions", "submissions-broken", "submissions-dead"] {
        run(on(&["queue", "create", queue])).succeeded();
    }
    run(on(&["stream", "create", "events", "--shards", "2"])).succeeded();
    let place = Place(&on);
    let bot = Bot::start(on(&["run", flow().to_str().expect("a path")]));
    let report = place.fleet("20", "4s", "3");
    place.drained();
    bot.stop();
    let (events, repeated) = place.events();
    complete(&events, std::slice::from_ref(&report));
    assert_eq!(repeated, 0, "without a fault nothing is repeated");
    assert!(report["broken"].as_u64().expect("a count") > 0, "{report}");
    assert!(place.left("submissions-broken") > 0, "a sample is kept");
    assert_eq!(place.left("submissions-dead"), 0);
}
