//! What is known about a secret: its versions and the stages that point to them.
//!
//! ```text
//!   a new version ─▶ AWSCURRENT ─▶ AWSPREVIOUS ─▶ no stage: the hundred youngest are kept
//! ```
//!
//! What must hold: a stage points to one version, and a secret with a version has one that is `AWSCURRENT`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::errors::invalid;
use crate::context::Context;
use crate::fault::Fault;

/// The version that readers get who do not say which.
pub(super) const CURRENT: &str = "AWSCURRENT";
/// The one before it.
pub(super) const PREVIOUS: &str = "AWSPREVIOUS";
/// Most versions that no stage points to.
const UNSTAGED_MAX: usize = 100;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Most stages of a version, and of all versions of a secret.
const STAGES_MAX: usize = 20;

/// A secret, without its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Secret {
    /// The name.
    pub(super) name: String,
    /// The end of its ARN.
    pub(super) suffix: String,
    pub(super) description: Option<String>,
    pub(super) key_id: Option<String>,
    pub(super) tags: BTreeMap<String, String>,
    /// The versions, the oldest first.
    pub(super) versions: Vec<Version>,
    /// Milliseconds since 1970.
    pub(super) created_at: u64,
    pub(super) changed_at: u64,
    /// The beginning of the day on which a value was read the last time.
    #[serde(default)]
    pub(super) accessed_at: Option<u64>,
    /// When it goes, if it is deleted, and when that was said.
    pub(super) deletion: Option<Deletion>,
}

/// A version, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    pub(super) id: String,
    pub(super) stages: Vec<String>,
    pub(super) created_at: u64,
}

/// A secret on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Deletion {
    pub(super) said_at: u64,
    pub(super) due_at: u64,
}

impl Secret {
    /// The ARN.
    pub(super) fn arn(&self, context: &Context) -> String {
        context.arn("secretsmanager", &format!("secret:{}-{}", self.name, self.suffix))
    }

    /// A value is read now. Returns whether it is the first time today.
    pub(super) fn access(&mut self, now: u64) -> bool {
        let day = now - now % DAY_MS;
        self.accessed_at.replace(day) != Some(day)
    }

    /// A version by its identifier.
    pub(super) fn version(&self, id: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.id == id)
    }

    /// The version that a stage points to.
    pub(super) fn staged(&self, stage: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.stages.iter().any(|staged| staged == stage))
    }

    /// Adds a version and points stages to it. Returns the versions that are not kept any longer.
    pub(super) fn add(&mut self, id: String, stages: Vec<String>, now: u64) -> Vec<String> {
        let stages = if self.versions.is_empty() && !stages.iter().any(|stage| stage == CURRENT) {
            [stages, vec![CURRENT.to_owned()]].concat()
        } else {
            stages
        };
        let before = self.staged(CURRENT).map(|version| version.id.clone());
        let replaced = stages.iter().any(|stage| stage == CURRENT);
        for version in &mut self.versions {
            version.stages.retain(|stage| !(stages.contains(stage) || replaced && stage == PREVIOUS));
            if replaced && Some(&version.id) == before.as_ref() {
                version.stages.push(PREVIOUS.to_owned());
            }
        }
        self.versions.push(Version { id, stages, created_at: now });
        self.changed_at = now;
        self.prune()
    }

    /// Checks that the secret has no more stages than it may have.
    pub(super) fn check_stages(&self) -> Result<(), Fault> {
        if self.versions.iter().map(|version| version.stages.len()).sum::<usize>() > STAGES_MAX {
            let message = format!("A secret can have {STAGES_MAX} staging labels at most.");
            return Err(Fault::client("LimitExceededException", message));
        }
        Ok(())
    }

    fn prune(&mut self) -> Vec<String> {
        let unstaged: Vec<String> = self
            .versions
            .iter()
            .filter(|version| version.stages.is_empty())
            .map(|version| version.id.clone())
            .collect();
        let gone = unstaged[..unstaged.len().saturating_sub(UNSTAGED_MAX)].to_vec();
        self.versions.retain(|version| !gone.contains(&version.id));
        gone
    }
}

/// Checks stages that a caller gives.
pub(super) fn check_stages(stages: Option<Vec<String>>) -> Result<Vec<String>, Fault> {
    let stages = stages.unwrap_or_else(|| vec![CURRENT.to_owned()]);
    let long = |stage: &String| stage.is_empty() || stage.chars().count() > 256;
    if !(1..=STAGES_MAX).contains(&stages.len()) || stages.iter().any(long) {
        return Err(invalid(format!(
            "VersionStages must be 1 to {STAGES_MAX} texts of 1 to 256 characters."
        )));
    }
    Ok(stages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(secret: &mut Secret, id: &str, stages: &[&str]) -> Vec<String> {
        secret.add(id.to_owned(), stages.iter().map(|stage| (*stage).to_owned()).collect(), 7)
    }

    fn id(secret: &Secret, stage: &str) -> Option<String> {
        secret.staged(stage).map(|version| version.id.clone())
    }

    #[test]
    fn stages_move_on() {
        let mut secret = Secret::default();
        add(&mut secret, "1", &["mine"]);
        assert_eq!(
            id(&secret, CURRENT).as_deref(),
            Some("1"),
            "the first is the current one, whatever is said"
        );
        add(&mut secret, "2", &[CURRENT]);
        add(&mut secret, "3", &[CURRENT]);
        assert_eq!(id(&secret, CURRENT).as_deref(), Some("3"));
        assert_eq!(id(&secret, PREVIOUS).as_deref(), Some("2"));
        assert_eq!(id(&secret, "mine").as_deref(), Some("1"));
        add(&mut secret, "4", &["AWSPENDING", "mine"]);
        assert_eq!(id(&secret, CURRENT).as_deref(), Some("3"));
        assert_eq!(id(&secret, "mine").as_deref(), Some("4"));
        assert!(secret.version("1").unwrap().stages.is_empty());
    }

    #[test]
    fn a_secret_has_few_stages() {
        let mut secret = Secret::default();
        add(&mut secret, "first", &[CURRENT]);
        for number in 1..STAGES_MAX {
            add(&mut secret, &number.to_string(), &[&format!("mine-{number}")]);
            secret.check_stages().unwrap();
        }
        add(&mut secret, "moved", &["mine-1"]);
        secret.check_stages().expect("a stage that moves is not another one");
        add(&mut secret, "last", &["another"]);
        assert_eq!(secret.check_stages().unwrap_err().code, "LimitExceededException");
    }

    #[test]
    fn old_versions_go() {
        let mut secret = Secret::default();
        for number in 0..UNSTAGED_MAX + 2 {
            assert!(add(&mut secret, &number.to_string(), &[CURRENT]).is_empty());
        }
        assert_eq!(add(&mut secret, "last", &[CURRENT]), ["0"]);
        assert_eq!(secret.versions.len(), UNSTAGED_MAX + 2);
        assert!(check_stages(Some(vec![])).is_err() && check_stages(Some(vec![String::new()])).is_err());
        assert_eq!(check_stages(None).unwrap(), [CURRENT]);
    }
}
