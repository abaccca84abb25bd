//! The policy that allows what the code does, and nothing else.
//!
//! It is made from the tables of actions, so a call that is added to the code is in the next policy; a test compares it
//! with the calls that were seen (`tests/policy.rs`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::action::{self, Action, Resource, Service, Use};

/// A kind of thing that a policy is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Thing {
    /// A stream of Kinesis.
    Stream,
    /// A queue of SQS.
    Queue,
    /// A table of DynamoDB, with its indexes and its changes.
    Table,
    /// A bucket of S3, with its objects.
    Bucket,
    /// A table of Keyspaces, of which only changes are read.
    KeyspacesTable,
}

impl Thing {
    /// Every kind.
    pub const ALL: [Thing; 5] =
        [Thing::Stream, Thing::Queue, Thing::Table, Thing::Bucket, Thing::KeyspacesTable];

    fn has(self, service: Service) -> bool {
        match service {
            Service::Kinesis => self == Thing::Stream,
            Service::Sqs => self == Thing::Queue,
            Service::Dynamodb | Service::DynamodbStreams => self == Thing::Table,
            Service::S3 => self == Thing::Bucket,
            Service::Keyspaces => self == Thing::KeyspacesTable,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Thing::Stream => "Streams",
            Thing::Queue => "Queues",
            Thing::Table => "Tables",
            Thing::Bucket => "Buckets",
            Thing::KeyspacesTable => "Keyspaces",
        }
    }
}

/// What somebody wants to do with a thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// What kind of thing it is.
    pub thing: Thing,
    /// Its name; `*` stands for any number of characters. That of a Keyspaces table is `keyspace/table`.
    pub name: String,
    /// What is done with it. [`Use::Look`] goes without saying.
    pub uses: BTreeSet<Use>,
}

/// Whose things they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The region, or `*`.
    pub region: String,
    /// The number of the account, or `*`.
    pub account: String,
}

/// The rows that these uses of a thing need.
pub fn needed(thing: Thing, uses: &BTreeSet<Use>) -> impl Iterator<Item = &'static Action> {
    action::all().filter(move |row| thing.has(row.service) && row.is_needed(uses))
}

/// The policy document for some wishes. Wishes for the same kind and uses share their statements.
pub fn document(wishes: &[Wish], owner: &Owner) -> Value {
    let mut groups: BTreeMap<(Thing, &BTreeSet<Use>), Vec<&str>> = BTreeMap::new();
    for wish in wishes {
        groups.entry((wish.thing, &wish.uses)).or_default().push(&wish.name);
    }
    let mut statements = Vec::new();
    let mut of_account = BTreeSet::new();
    for (number, ((thing, uses), names)) in groups.into_iter().enumerate() {
        let mut by_resource: BTreeMap<Resource, BTreeSet<String>> = BTreeMap::new();
        for row in needed(thing, uses) {
            match row.resource {
                Resource::Account => of_account.extend(row.permissions()),
                resource => by_resource.entry(resource).or_default().extend(row.permissions()),
            }
        }
        for (resource, actions) in by_resource {
            let named = names.iter().flat_map(|name| owner.spell(thing, resource, name));
            let resources: BTreeSet<String> = named.collect();
            // Letters and digits are all that the name of a statement may have.
            let sid = format!("{}{resource:?}{number}", thing.word());
            statements
                .push(json!({ "Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resources }));
        }
    }
    if !of_account.is_empty() {
        statements.push(json!({ "Sid": "Lists", "Effect": "Allow", "Action": of_account, "Resource": "*" }));
    }
    json!({ "Version": "2012-10-17", "Statement": statements })
}

impl Owner {
    fn partition(&self) -> &'static str {
        match self.region.as_str() {
            region if region.starts_with("cn-") => "aws-cn",
            region if region.starts_with("us-gov-") => "aws-us-gov",
            _ => "aws",
        }
    }

    /// The names under which policies know a thing.
    fn spell(&self, thing: Thing, resource: Resource, name: &str) -> Vec<String> {
        let Owner { region, account } = self;
        let of = |service: &str, rest: String| {
            format!("arn:{}:{service}:{region}:{account}:{rest}", self.partition())
        };
        let of_s3 = |rest: String| format!("arn:{}:s3:::{rest}", self.partition());
        if thing == Thing::KeyspacesTable {
            let (keyspace, table) = name.split_once('/').unwrap_or((name, "*"));
            return vec![of("cassandra", format!("/keyspace/{keyspace}/table/{table}/stream/*"))];
        }
        match resource {
            Resource::Stream => vec![of("kinesis", format!("stream/{name}"))],
            Resource::Consumer => vec![of("kinesis", format!("stream/{name}/consumer/*"))],
            Resource::Queue => vec![of("sqs", name.to_string())],
            Resource::Table => vec![of("dynamodb", format!("table/{name}"))],
            Resource::Index => {
                let indexes = of("dynamodb", format!("table/{name}/index/*"));
                vec![of("dynamodb", format!("table/{name}")), indexes]
            }
            Resource::TableStream => vec![of("dynamodb", format!("table/{name}/stream/*"))],
            Resource::Bucket => vec![of_s3(name.to_string())],
            Resource::Object => vec![of_s3(format!("{name}/*"))],
            Resource::Account => vec!["*".to_string()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(wishes: &[Wish]) -> Vec<Value> {
        let owner = Owner { region: "cn-north-1".to_string(), account: "1".to_string() };
        document(wishes, &owner)["Statement"].as_array().expect("statements").clone()
    }

    fn wish(thing: Thing, name: &str, uses: &[Use]) -> Wish {
        Wish { thing, name: name.to_string(), uses: uses.iter().copied().collect() }
    }

    #[test]
    fn who_reads_may_not_write() {
        let text = |uses: &[Use]| format!("{:?}", statements(&[wish(Thing::Stream, "clicks", uses)]));
        assert!(text(&[Use::Read]).contains("kinesis:GetRecords"));
        assert!(text(&[Use::Write]).contains("kinesis:PutRecords"));
        for other in ["kinesis:PutRecords", "kinesis:CreateStream", "sqs:", "\"*\""] {
            assert!(other == "\"*\"" || !text(&[Use::Read]).contains(other), "{other}");
        }
        assert!(text(&[Use::Read]).contains("arn:aws-cn:kinesis:cn-north-1:1:stream/clicks/consumer/*"));
    }

    #[test]
    fn things_of_one_kind_and_use_share_a_statement() {
        let both = [wish(Thing::Queue, "a", &[Use::Read]), wish(Thing::Queue, "b", &[Use::Read])];
        let of_queues: Vec<_> =
            statements(&both).into_iter().filter(|statement| statement["Sid"] != "Lists").collect();
        assert_eq!(of_queues.len(), 1);
        assert_eq!(
            of_queues[0]["Resource"],
            json!(["arn:aws-cn:sqs:cn-north-1:1:a", "arn:aws-cn:sqs:cn-north-1:1:b"])
        );
    }

    #[test]
    fn nothing_but_lists_is_allowed_on_everything() {
        let all = [Use::Read, Use::Write, Use::Manage];
        let wishes: Vec<_> = Thing::ALL.iter().map(|thing| wish(*thing, "a", &all)).collect();
        for statement in statements(&wishes) {
            if statement["Resource"] != "*" {
                continue;
            }
            for action in statement["Action"].as_array().expect("actions") {
                let action = action.as_str().expect("a text");
                assert!(action.contains(":List"), "{action} is allowed on everything");
            }
        }
    }
}
