//! Every command on tables, on a directory that nobody holds and through a server.

mod harness;

use harness::{Data, Ran, Server, run, run_with_input};
use serde_json::json;

#[track_caller]
fn says(ran: Ran, text: &str) {
    assert_eq!(ran.succeeded().stdout, format!("{text}\n"));
}

#[test]
fn every_command_works() {
    for serves in [false, true] {
        let data = Data::new();
        let _server: Option<Server> = serves.then(|| data.serve());
        let table = |arguments: &[&str]| run(data.command_on("table", arguments));
        let index = "by-colour:colour:S,at:N";
        let create = ["create", "rides", "--key", "id:S", "--range", "at:N", "--index", index];
        let created = table(&[&create[..], &["--changes", "both", "--ttl", "until"]].concat());
        says(created, "created table rides: items are found by id:S,at:N");
        let put = data.command_on("table", ["put", "rides", "-"]);
        let lines = "{\"id\":\"a\",\"at\":1,\"colour\":\"red\"}\n{\"id\":\"a\",\"at\":2}\n";
        says(run_with_input(put, lines.as_bytes()), "put 2 items into table rides");
        let exact = "12345678901234567890123456789012345678";
        let item = format!("{{\"at\":3,\"id\":\"a\",\"n\":{exact}}}");
        says(table(&["put", "rides", &item, "--if-missing", "id"]), "put 1 item into table rides");
        table(&["put", "rides", &item, "--if-missing", "id"]).failed(2, &["condition"]);
        says(table(&["get", "rides", r#"{"id":"a","at":3}"#, "--json"]), &item);
        let tagged = table(&["get", "rides", r#"{"id":{"S":"a"},"at":{"N":"1"}}"#, "--tagged", "--json"]);
        assert_eq!(tagged.json()["colour"], json!({"S": "red"}));

        let key = r#"{"id":"a","at":2}"#;
        let update = ["update", "rides", key, "--set", "l=[1,{\"x\":2}]", "--add", "n=5", "--json"];
        table(&update).succeeded();
        let updated = table(&["update", "rides", key, "--set", "l[1].x=3", "--remove", "n", "--json"]);
        assert_eq!(updated.json(), json!({"id": "a", "at": 2, "l": [1, {"x": 3}]}));
        table(&["update", "rides", key, "--set", "n=1", "--if", "l[0]=2"]).failed(2, &["condition"]);

        let ats = |arguments: &[&str]| -> Vec<u64> {
            let ran = table(&[arguments, &["--json"]].concat()).succeeded();
            ran.json_lines().iter().map(|item| item["at"].as_u64().unwrap()).collect()
        };
        assert_eq!(ats(&["query", "rides", "\"a\""]), [1, 2, 3]);
        assert_eq!(ats(&["query", "rides", "\"a\"", "--range", ">=2", "--backward"]), [3, 2]);
        assert_eq!(ats(&["query", "rides", "\"a\"", "--limit", "2"]), [1, 2]);
        assert_eq!(ats(&["query", "rides", "\"red\"", "--index", "by-colour"]), [1]);
        assert_eq!(ats(&["scan", "rides"]).len(), 3);
        let scanned = table(&["scan", "rides"]).succeeded();
        assert_eq!(scanned.lines().len(), 4, "{scanned:#?}");
        assert!(scanned.lines()[0].starts_with("id"), "{scanned:#?}");

        says(table(&["delete", "rides", key]), "deleted the item from table rides");
        says(table(&["delete", "rides", key]), "table rides had no such item");
        table(&["get", "rides", key]).failed(1, &["no item with this key", "table scan"]);
        let changes = table(&["changes", "rides", "--json"]).succeeded().json_lines();
        let events: Vec<&str> = changes.iter().map(|change| change["event"].as_str().unwrap()).collect();
        assert_eq!(events, ["insert", "insert", "insert", "modify", "modify", "remove"]);
        assert_eq!(changes[5]["old"]["l"], json!([1, {"x": 3}]));

        let listed = &table(&["ls", "--json"]).json()["tables"][0];
        assert_eq!((&listed["name"], &listed["items"]), (&json!("rides"), &json!(2)));
        table(&["rm", "rides"]).failed(2, &["confirmation", "--yes"]);
        says(table(&["rm", "rides", "--yes"]), "removed table rides with all its items");
        for arguments in [&["scan", "rides"][..], &["get", "rides", "{}"], &["put", "rides", "{}"]] {
            table(arguments).failed(2, &["table `rides` does not exist", "table ls"]);
        }
    }
}

#[test]
fn what_is_wrong_is_refused_with_a_hint() {
    let data = Data::new();
    let table = |arguments: &[&str]| run(data.command_on("table", arguments));
    table(&["create", "rides", "--key", "id:S"]).succeeded();
    table(&["create", "rides", "--key", "id:S"]).failed(2, &["exists already", "table rm"]);
    table(&["put", "rides", "{"]).failed(2, &["not understood"]);
    table(&["put", "rides", "[1]"]).failed(2, &["not an object"]);
    table(&["put", "rides", "{\"id\":1}"]).failed(2, &["must be text"]);
    table(&["update", "rides", "{\"id\":\"a\"}", "--set", "n"]).failed(2, &["no `=`"]);
    table(&["update", "rides", "{\"id\":\"a\"}", "--remove", "a[x"]).failed(2, &["not a path"]);
    table(&["query", "rides", "\"a\"", "--range", "1"]).failed(2, &["operator"]);
    table(&["query", "rides", "\"a\"", "--range", ">1"]).failed(2, &["no range attribute"]);
    table(&["query", "rides", "\"a\"", "--index", "none"]).failed(2, &["no index"]);
    table(&["changes", "rides"]).failed(2, &["not written down", "--changes"]);
    let put = data.command_on("table", ["put", "rides", "-"]);
    let ran = run_with_input(put, b"{\"id\":\"a\"}\n{}\n").failed(2, &["line 2: ", "missing"]);
    assert!(ran.stderr.contains("1 item stored before that"), "{ran:#?}");
}
