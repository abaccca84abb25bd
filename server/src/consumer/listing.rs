//! `consumer ls` and `consumer leases`.

use std::collections::BTreeSet;
use std::fmt;

use anabranch_consumer::{Application, Checkpoint, Lease, applications};
use anabranch_model::TableName;
use serde::Serialize;

use super::Session;
use crate::failure::Failure;
use crate::output::{table, table_text};
use crate::quantity::grouped;

#[derive(Debug, Serialize)]
struct ApplicationReport {
    name: String,
    leases: usize,
    owned: usize,
    finished: usize,
    workers: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ApplicationsReport {
    applications: Vec<ApplicationReport>,
}

pub(super) async fn ls(session: &Session) -> Result<(), Failure> {
    let mut reports = Vec::new();
    for name in applications(&session.tables).await? {
        let leases = Application::open(session.tables.clone(), &name).await?.leases().await?;
        let workers: BTreeSet<_> = leases.iter().filter_map(Lease::reader).map(ToString::to_string).collect();
        reports.push(ApplicationReport {
            name: name.to_string(),
            leases: leases.len(),
            owned: leases.iter().filter(|lease| lease.owner.is_some()).count(),
            finished: leases.iter().filter(|lease| lease.checkpoint == Checkpoint::ShardEnd).count(),
            workers: workers.into_iter().collect(),
        });
    }
    session.output.print(&ApplicationsReport { applications: reports })
}

impl fmt::Display for ApplicationsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.applications.is_empty() {
            return f.write_str("no application has leases here");
        }
        let mut table = table(&["APPLICATION", "LEASES", "OWNED", "FINISHED", "WORKERS"], &[1, 2, 3, 4]);
        for application in &self.applications {
            table.add_row([
                application.name.clone(),
                grouped(application.leases as u64),
                grouped(application.owned as u64),
                grouped(application.finished as u64),
                grouped(application.workers.len() as u64),
            ]);
        }
        f.write_str(&table_text(&table))
    }
}

#[derive(Debug, Serialize)]
struct LeaseReport {
    lease: String,
    owner: Option<String>,
    next_owner: Option<String>,
    checkpoint: String,
    sub_sequence: u64,
    counter: u64,
    owner_switches: u64,
    throughput_kbps: f64,
    parents: Vec<String>,
    children: Vec<String>,
}

#[derive(Debug, Serialize)]
struct LeasesReport {
    leases: Vec<LeaseReport>,
}

pub(super) async fn leases(session: &Session, application: &TableName) -> Result<(), Failure> {
    let leases = Application::open(session.tables.clone(), application).await?.leases().await?;
    session.output.print(&LeasesReport { leases: leases.iter().map(LeaseReport::from).collect() })
}

impl From<&Lease> for LeaseReport {
    fn from(lease: &Lease) -> Self {
        let names = |ids: &[anabranch_model::ShardId]| ids.iter().map(ToString::to_string).collect();
        let handed_over = lease.checkpoint_owner.is_some();
        LeaseReport {
            lease: lease.key.to_string(),
            owner: lease.reader().map(ToString::to_string),
            next_owner: lease.owner.as_ref().filter(|_| handed_over).map(ToString::to_string),
            checkpoint: lease.checkpoint.text(),
            sub_sequence: lease.checkpoint.sub_sequence(),
            counter: lease.counter,
            owner_switches: lease.owner_switches,
            throughput_kbps: lease.throughput_kbps,
            parents: names(&lease.parents),
            children: names(&lease.children),
        }
    }
}

impl fmt::Display for LeasesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.leases.is_empty() {
            return f.write_str("the application has no leases yet");
        }
        let mut table = table(&["LEASE", "OWNER", "CHECKPOINT", "COUNTER", "KB/S"], &[3, 4]);
        for lease in &self.leases {
            let owner = match (&lease.owner, &lease.next_owner) {
                (Some(owner), Some(next)) => format!("{owner} to {next}"),
                (Some(owner), None) => owner.clone(),
                (None, _) => "-".to_owned(),
            };
            table.add_row([
                lease.lease.clone(),
                owner,
                lease.checkpoint.clone(),
                grouped(lease.counter),
                format!("{:.1}", lease.throughput_kbps),
            ]);
        }
        f.write_str(&table_text(&table))
    }
}
