//! `anabranch iam-policy`: what an administrator has to allow, and nothing else.

use std::collections::BTreeSet;

use anabranch_aws::action::Use;
use anabranch_aws::policy::{Owner, Thing, Wish, document};
use clap::Args;

use crate::backend::EngineName;
use crate::failure::Failure;
use crate::output;

/// Arguments of `anabranch iam-policy`.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// A stream and what is done with it: NAME, or NAME:read,write,manage; may be given several times
    #[arg(long = "stream", value_name = "NAME[:USES]")]
    streams: Vec<String>,
    /// A queue and what is done with it
    #[arg(long = "queue", value_name = "NAME[:USES]")]
    queues: Vec<String>,
    /// A table of DynamoDB and what is done with it
    #[arg(long = "table", value_name = "NAME[:USES]")]
    tables: Vec<String>,
    /// A bucket and what is done with it
    #[arg(long = "bucket", value_name = "NAME[:USES]")]
    buckets: Vec<String>,
    /// A table of Keyspaces whose changes are read
    #[arg(long = "keyspaces-table", value_name = "KEYSPACE/TABLE")]
    keyspaces: Vec<String>,
    /// The region [default: all]
    #[arg(long, default_value = "*", value_name = "REGION")]
    region: String,
    /// The number of the account [default: any]
    #[arg(long, default_value = "*", value_name = "ACCOUNT")]
    account: String,
    /// Policies are of AWS, whatever the engine is
    #[arg(long, hide = true, value_enum)]
    engine: Option<EngineName>,
}

/// Prints the policy.
pub(crate) fn run(args: &PolicyArgs) -> Result<(), Failure> {
    if args.engine == Some(EngineName::Embedded) {
        return Err(Failure::usage(
            "a policy says what AWS allows, and the embedded engine asks AWS for nothing",
            "leave --engine out",
        ));
    }
    let mut wishes = Vec::new();
    for (thing, texts) in [
        (Thing::Stream, &args.streams),
        (Thing::Queue, &args.queues),
        (Thing::Table, &args.tables),
        (Thing::Bucket, &args.buckets),
        (Thing::KeyspacesTable, &args.keyspaces),
    ] {
        for text in texts {
            wishes.push(wish(thing, text)?);
        }
    }
    if wishes.is_empty() {
        return Err(Failure::usage(
            "a policy for what? Nothing is named",
            "for instance: anabranch iam-policy --stream clicks:read --queue 'orders-*:read,write'",
        ));
    }
    let owner = Owner { region: args.region.clone(), account: args.account.clone() };
    check_owner(&owner)?;
    let text = serde_json::to_string_pretty(&document(&wishes, &owner)).map_err(std::io::Error::from)?;
    output::write_out(format!("{text}\n").as_bytes())
}

/// Reads `NAME` or `NAME:read,write,manage`. Who says nothing reads and writes.
fn wish(thing: Thing, text: &str) -> Result<Wish, Failure> {
    let (name, uses) = text.split_once(':').unwrap_or((text, "read,write"));
    let known = |c: char| c.is_ascii_alphanumeric() || "._-*/".contains(c);
    if name.is_empty() || !name.chars().all(known) {
        return Err(Failure::usage(
            format!("`{name}` is no name: letters, digits, `.`, `_`, `-` and `*` are allowed"),
            "`*` stands for any number of characters",
        ));
    }
    if thing == Thing::KeyspacesTable && !name.contains('/') {
        return Err(Failure::usage(
            format!("`{name}` names no keyspace"),
            "write KEYSPACE/TABLE, for instance shop/orders",
        ));
    }
    let mut wanted = BTreeSet::new();
    for word in uses.split(',') {
        wanted.insert(match word.trim() {
            "read" => Use::Read,
            "write" => Use::Write,
            "manage" => Use::Manage,
            _ => {
                return Err(Failure::usage(
                    format!("`{word}` is no use of a thing"),
                    "a use is read, write or manage; several are joined with commas",
                ));
            }
        });
    }
    Ok(Wish { thing, name: name.to_owned(), uses: wanted })
}

fn check_owner(owner: &Owner) -> Result<(), Failure> {
    let account = &owner.account;
    if account != "*" && !(account.len() == 12 && account.chars().all(|c| c.is_ascii_digit())) {
        return Err(Failure::usage(
            format!("`{account}` is not the number of an account"),
            "it has twelve digits; `aws sts get-caller-identity` shows it",
        ));
    }
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if owner.region != "*" && !owner.region.chars().all(known) {
        return Err(Failure::usage(
            format!("`{}` is not a region", owner.region),
            "a region looks like eu-central-1",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_a_name_and_uses() {
        let wish_of = |text| wish(Thing::Stream, text).map(|wish| (wish.name, wish.uses.len())).ok();
        assert_eq!(wish_of("clicks"), Some(("clicks".to_owned(), 2)));
        assert_eq!(wish_of("clicks-*:read"), Some(("clicks-*".to_owned(), 1)));
        assert_eq!(wish_of("a:read,write,manage"), Some(("a".to_owned(), 3)));
        for broken in ["", ":read", "a:", "a:delete", "a b", "a\"b"] {
            assert_eq!(wish_of(broken), None, "{broken}");
        }
        assert!(wish(Thing::KeyspacesTable, "orders").is_err());
    }
}
