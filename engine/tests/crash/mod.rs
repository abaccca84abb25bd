//! Crashes at every operation of scripted runs on the simulated disk.
//!
//! ```text
//!   workloads ──▶ Run: an engine driven by hand ──▶ Ledger: what was asked for and what was answered, in the
//!                                                     order of the journal, each with its moment
//!   explore: for every moment and seed ──▶ crash image ──▶ open ──▶ World as readers see it
//!                                                     must be the ledger up to some step between the last that
//!                                                     was answered and the last that was asked for
//! ```
//!
//! Several test files use these parts, each its own share of them.
#![allow(dead_code, unused_imports, reason = "each test file uses its own share")]

pub mod ledger;
pub mod world;

pub mod run;
pub mod workloads;

pub mod explore;
pub mod frames;
pub mod process;
pub mod specimen;
pub mod survey;

pub use explore::{Exploration, Violation};
pub use ledger::Ledger;
pub use run::{Call, Run};
pub use survey::Survey;
pub use world::World;
