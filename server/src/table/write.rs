//! `table put`, `table update` and `table delete`.

use std::fmt;
use std::io::{self, BufRead};

use anabranch_model::TableName;
use anabranch_model::table::expression::{SetOperand, SetValue};
use anabranch_model::table::{Item, Returning, Update, Write};
use clap::Args;
use serde::Serialize;

use super::Session;
use super::input::{ConditionArgs, assignment, parse_path};
use super::read::print_items;
use crate::failure::Failure;
use crate::quantity::counted;

/// Arguments of `table put`.
#[derive(Debug, Args)]
pub(super) struct PutArgs {
    /// The table
    name: String,
    /// The item, or `-` to read one item a line from standard input
    item: String,
    #[command(flatten)]
    condition: ConditionArgs,
}

pub(super) async fn put(session: &Session<'_>, args: &PutArgs) -> Result<(), Failure> {
    let name = TableName::new(&args.name)?;
    session.store.table(&name).await?;
    let condition = args.condition.condition(session.form)?;
    let mut report = Put { table: name.to_string(), items: 0 };
    let write = async |text: &str| {
        let mut write = Write::put(session.form.item(text)?);
        write.condition = condition.clone();
        session.store.write(&name, write).await?;
        Ok::<_, Failure>(())
    };
    if args.item != "-" {
        write(&args.item).await?;
        report.items = 1;
        return session.output.print(&report);
    }
    let mut number = 0;
    while let Some(line) = tokio::task::block_in_place(|| io::stdin().lock().lines().next()) {
        number += 1;
        let line = line.map_err(|error| Failure::io("read", "standard input".as_ref(), &error))?;
        if !line.trim().is_empty() {
            let written = write(&line).await.map_err(|failure| failure.at(format_args!("line {number}")));
            written.map_err(|failure| failure.after_storing(report.items, "item"))?;
            report.items += 1;
        }
    }
    session.output.print(&report)
}

#[derive(Serialize)]
struct Put {
    table: String,
    items: u64,
}

impl fmt::Display for Put {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "put {} into table {}", counted(self.items, "item"), self.table)
    }
}

/// Arguments of `table update`.
#[derive(Debug, Args)]
pub(super) struct UpdateArgs {
    /// The table
    name: String,
    /// The key of the item, as in {"id": "a"}
    key: String,
    /// Give a path a value; may be given several times
    #[arg(long, value_name = "PATH=JSON")]
    set: Vec<String>,
    /// Add to a number or, with --tagged, to a set
    #[arg(long, value_name = "PATH=JSON")]
    add: Vec<String>,
    /// Take a value away
    #[arg(long, value_name = "PATH")]
    remove: Vec<String>,
    #[command(flatten)]
    condition: ConditionArgs,
}

impl UpdateArgs {
    fn update(&self, session: &Session<'_>) -> Result<Update, Failure> {
        let mut update = Update::new();
        for text in &self.set {
            let (path, value) = assignment(session.form, text)?;
            update = update.set(path, SetValue::Operand(SetOperand::Value(value)));
        }
        for text in &self.add {
            let (path, value) = assignment(session.form, text)?;
            update = update.add(path, value);
        }
        for text in &self.remove {
            update = update.remove(parse_path(text)?);
        }
        Ok(update)
    }
}

pub(super) async fn update(session: &Session<'_>, args: &UpdateArgs) -> Result<(), Failure> {
    let name = TableName::new(&args.name)?;
    let key = session.store.table(&name).await?.options.key;
    let mut write = Write::update(session.form.item(&args.key)?, args.update(session)?);
    write.condition = args.condition.condition(session.form)?;
    let item = session.store.write(&name, write.returning(Returning::New)).await?;
    print_items(session, &key, &Vec::<Item>::from_iter(item))
}

/// Arguments of `table delete`.
#[derive(Debug, Args)]
pub(super) struct DeleteArgs {
    /// The table
    name: String,
    /// The key of the item, as in {"id": "a"}
    key: String,
    #[command(flatten)]
    condition: ConditionArgs,
}

pub(super) async fn delete(session: &Session<'_>, args: &DeleteArgs) -> Result<(), Failure> {
    let name = TableName::new(&args.name)?;
    let mut write = Write::delete(session.form.item(&args.key)?);
    write.condition = args.condition.condition(session.form)?;
    let old = session.store.write(&name, write.returning(Returning::Old)).await?;
    session.output.print(&Deleted { table: name.to_string(), deleted: old.is_some() })
}

#[derive(Serialize)]
struct Deleted {
    table: String,
    deleted: bool,
}

impl fmt::Display for Deleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.deleted {
            true => write!(f, "deleted the item from table {}", self.table),
            false => write!(f, "table {} had no such item", self.table),
        }
    }
}
