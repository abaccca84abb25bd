//! What the code can ask of AWS: one row per action, in a table beside the code that uses it.
//!
//! What must hold: every request goes through `Caller::call` with the row of its action,
//! so that the tables are all that a policy has to allow. The rows say beside that how a call is treated: which
//! others it waits for, how often an account may make it, and whether it may be made again when nobody knows
//! whether it was carried out.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// A service of AWS. Each has its own permits, so that one that is slow does not hold up another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Streams.
    Kinesis,
    /// Queues.
    Sqs,
    /// Tables.
    Dynamodb,
    /// The changes of tables.
    DynamodbStreams,
    /// The changes of Keyspaces tables.
    Keyspaces,
    /// Blobs.
    S3,
}

impl Service {
    /// Every service.
    pub const ALL: [Service; 6] = [
        Service::Kinesis,
        Service::Sqs,
        Service::Dynamodb,
        Service::DynamodbStreams,
        Service::Keyspaces,
        Service::S3,
    ];

    /// What stands before the colon of a permission.
    pub const fn prefix(self) -> &'static str {
        match self {
            Service::Kinesis => "kinesis",
            Service::Sqs => "sqs",
            // The streams of tables are guarded by the tables' own prefix.
            Service::Dynamodb | Service::DynamodbStreams => "dynamodb",
            Service::Keyspaces => "cassandra",
            Service::S3 => "s3",
        }
    }

    /// The name that settings of a service go by, for instance `AWS_ENDPOINT_URL_KINESIS`.
    pub const fn id(self) -> &'static str {
        match self {
            Service::Kinesis => "Kinesis",
            Service::Sqs => "SQS",
            Service::Dynamodb => "DynamoDB",
            Service::DynamodbStreams => "DynamoDB Streams",
            Service::Keyspaces => "KeyspacesStreams",
            Service::S3 => "S3",
        }
    }

    /// The name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Service::Kinesis => "Kinesis",
            Service::Sqs => "SQS",
            Service::Dynamodb => "DynamoDB",
            Service::DynamodbStreams => "DynamoDB Streams",
            Service::Keyspaces => "Keyspaces Streams",
            Service::S3 => "S3",
        }
    }
}

/// What an action is done to: the kind of resource that a policy names beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A stream of Kinesis.
    Stream,
    /// A registered consumer of a stream.
    Consumer,
    /// A queue.
    Queue,
    /// A table.
    Table,
    /// A table and its indexes.
    Index,
    /// The stream of changes of a table.
    TableStream,
    /// A bucket.
    Bucket,
    /// The objects of a bucket.
    Object,
    /// Nothing smaller than the account: `*`.
    Account,
}

/// What somebody wants to do with a resource: the parts that a policy is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// See that it is there and what it looks like. Every other use needs this too.
    Look,
    /// Take out what is in it.
    Read,
    /// Put something in.
    Write,
    /// Make, change and remove it.
    Manage,
}

/// Whom a call waits for, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Records, messages, items and bytes: many at once.
    Data,
    /// A call that the service answers late on purpose, for instance a receive that waits for messages. It has
    /// permits of its own, or those who wait would hold up those who send.
    Waiting,
    /// A body that takes as long as its bytes need. Whoever sends it notices when they stand still. It waits beside those
    /// that are answered late, or slow writers would hold up everyone.
    Moving,
    /// Making, changing and describing things: an account may do this so many times a second.
    Control {
        /// Calls a second that the account's quota allows.
        per_second: u32,
    },
}

/// One action: a request that the code can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Who answers it.
    pub service: Service,
    /// The name of the operation.
    pub name: &'static str,
    /// The name of the permission, which is not always that of the operation.
    pub permission: &'static str,
    /// Further permissions that the service asks for before it carries this out.
    pub also: &'static [&'static str],
    /// What it is needed for.
    pub need: Use,
    /// What else it is needed for.
    pub need_also: Option<Use>,
    /// What it is done to.
    pub resource: Resource,
    /// How it waits.
    pub lane: Lane,
    /// Whether a call whose outcome is unknown may be made again without asking: a read, or a write that has the same
    /// effect when it is done twice.
    pub repeatable: bool,
}

impl Action {
    /// An action whose permission has the name of the operation, which moves data, and which may not be repeated.
    pub const fn new(service: Service, name: &'static str, need: Use, resource: Resource) -> Self {
        let (permission, also, lane) = (name, &[] as &[&str], Lane::Data);
        Action { service, name, permission, also, need, need_also: None, resource, lane, repeatable: false }
    }

    /// The same action with a permission of another name.
    pub const fn allowed_by(self, permission: &'static str) -> Self {
        Action { permission, ..self }
    }

    /// The same action, for which these permissions are needed beside its own.
    pub const fn needing_also(self, also: &'static [&'static str]) -> Self {
        Action { also, ..self }
    }

    /// The same action, which is needed for another use too.
    pub const fn needed_to(self, need: Use) -> Self {
        Action { need_also: Some(need), ..self }
    }

    /// The same action, which an account may take so many times a second.
    pub const fn control(self, per_second: u32) -> Self {
        Action { lane: Lane::Control { per_second }, ..self }
    }

    /// The same action, which the service answers late on purpose.
    pub const fn waiting(self) -> Self {
        Action { lane: Lane::Waiting, ..self }
    }

    /// The same action with a body that takes its time.
    pub(crate) const fn moving(self) -> Self {
        Action { lane: Lane::Moving, ..self }
    }

    /// The same action, which may be made again when its outcome is unknown.
    pub const fn repeatable(self) -> Self {
        Action { repeatable: true, ..self }
    }

    /// The permission as policies spell it, for instance `kinesis:PutRecords`.
    pub fn permission(&self) -> String {
        format!("{}:{}", self.service.prefix(), self.permission)
    }

    /// Every permission that the service asks for, as policies spell them.
    pub fn permissions(&self) -> impl Iterator<Item = String> {
        let prefix = self.service.prefix();
        std::iter::once(&self.permission).chain(self.also).map(move |name| format!("{prefix}:{name}"))
    }

    /// Whether who uses a thing in these ways needs it.
    pub fn is_needed(&self, uses: &BTreeSet<Use>) -> bool {
        self.need == Use::Look
            || uses.contains(&self.need)
            || self.need_also.is_some_and(|need| uses.contains(&need))
    }

    /// How long one attempt may take.
    pub(crate) fn attempt_max(&self) -> Duration {
        match self.lane {
            Lane::Data | Lane::Control { .. } => Duration::from_secs(15),
            Lane::Waiting => Duration::from_secs(30),
            Lane::Moving => Duration::MAX,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.service.prefix(), self.name)
    }
}

/// Makes the rows of one service from one list, and the table of all of them, so that no row can be forgotten.
macro_rules! actions {
    ($($(#[$doc:meta])* $row:ident = $action:expr;)+) => {
        $($(#[$doc])* pub(crate) const $row: $crate::action::Action = $action;)+

        /// Every row.
        pub(crate) const ALL: &[$crate::action::Action] = &[$($row),+];
    };
}
pub(crate) use actions;

/// Everything that the code can ask of AWS.
pub fn all() -> impl Iterator<Item = &'static Action> {
    [
        crate::kinesis::action::ALL,
        crate::sqs::action::ALL,
        crate::dynamodb::action::ALL,
        crate::dynamodb_streams::action::ALL,
        crate::keyspaces_streams::action::ALL,
        crate::s3::action::ALL,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_is_another_operation() {
        let mut seen = HashSet::new();
        for action in all() {
            assert!(seen.insert((action.service, action.name)), "{action} has two rows");
            assert!(action.permission().starts_with(action.service.prefix()), "{action}");
        }
    }
}
