//! Where the region, the credentials and the endpoint come from, and what is said when they come from nowhere.
//!
//! The environment belongs to a process, so each case is a process: this test once more, with the environment of the case.

mod peer;

use std::process::Command;
use std::sync::Arc;

use anabranch_aws::{Aws, AwsOptions, Streams};
use anabranch_model::{ShardSource, StreamName};
use peer::WallClock;
use peer::stub::{Answer, Stub};
use tempfile::TempDir;

/// Where nobody listens: the machine's metadata cannot be asked, and must not be waited for.
const NOWHERE: &str = "http://127.0.0.1:9";

/// What a connection says with these variables and no others.
fn connecting_with(variables: &[(&str, &str)]) -> String {
    let child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "connect_as_the_environment_says", "--ignored", "--nocapture"])
        .env_clear()
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", NOWHERE)
        .envs(variables.iter().copied())
        .output()
        .expect("this test once more");
    String::from_utf8_lossy(&child.stdout).into_owned()
}

#[tokio::test]
#[ignore = "the other tests start it with an environment of their own"]
async fn connect_as_the_environment_says() {
    let profile = std::env::var("TEST_PROFILE").ok();
    let options = AwsOptions { profile, ..AwsOptions::default() };
    let aws = match Aws::connect(options, Arc::new(WallClock::default()), 1).await {
        Ok(aws) => aws,
        Err(error) => return println!("refused: {error:?}"),
    };
    println!("region: {}", aws.region());
    println!("endpoint of s3: {:?}", aws.endpoint("S3"));
    let stream = StreamName::new("clicks").unwrap();
    println!("listing: {:?}", Streams::new(&aws).shards(&stream, None, 1).await);
}

#[test]
fn a_missing_region_is_named() {
    let said = connecting_with(&[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")]);
    assert!(said.contains("refused: Misconfigured") && said.contains("AWS_REGION"), "{said}");
}

#[test]
fn a_region_that_is_none_is_named() {
    for region in ["eu central 1", "Frankfurt!", "eu-central-1.example.org", "-"] {
        let key = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
        let said = connecting_with(&[key[0], key[1], ("AWS_REGION", region)]);
        assert!(said.contains("refused: Misconfigured") && said.contains(region), "{said}");
    }
}

#[test]
fn missing_credentials_are_named() {
    let said = connecting_with(&[("AWS_REGION", "eu-central-1")]);
    assert!(said.contains("refused: Unauthenticated") && said.contains("AWS_ACCESS_KEY_ID"), "{said}");
}

#[test]
fn an_address_that_is_none_is_named() {
    let said = connecting_with(&[
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("AWS_ENDPOINT_URL", "localhost"),
    ]);
    assert!(said.contains("refused: Misconfigured") && said.contains("localhost"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_endpoint_of_a_service_counts_before_the_general_one() {
    let stub = Stub::start(|_, _| Answer::failure(400, "ResourceNotFoundException", "no")).await;
    let endpoint = stub.endpoint();
    let said = connecting_with(&[
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("AWS_ENDPOINT_URL", NOWHERE),
        ("AWS_ENDPOINT_URL_KINESIS", &endpoint),
    ]);
    assert!(said.contains("listing: Err(StreamNotFound(clicks))"), "{said}");
    assert!(said.contains(&format!("endpoint of s3: Some({NOWHERE:?})")), "{said}");
    assert_eq!(stub.asked(), ["listshards"]);
}

#[test]
fn a_profile_gives_region_and_credentials() {
    let folder = TempDir::new().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    };
    let config = file("config", "[profile work]\nregion = eu-west-3\nendpoint_url = http://127.0.0.1:9\n");
    let credentials = file("credentials", "[work]\naws_access_key_id = a\naws_secret_access_key = b\n");
    let files = [("AWS_CONFIG_FILE", &*config), ("AWS_SHARED_CREDENTIALS_FILE", &*credentials)];
    let said = connecting_with(&[files[0], files[1], ("TEST_PROFILE", "work")]);
    assert!(said.contains("region: eu-west-3") && said.contains("endpoint of s3: Some("), "{said}");
    let said = connecting_with(&[files[0], files[1], ("AWS_REGION", "eu-west-3"), ("TEST_PROFILE", "play")]);
    assert!(said.contains("refused: Unauthenticated") && said.contains("play"), "{said}");
}
