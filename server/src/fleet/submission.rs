//! Submissions as sensors send them, valid or broken in a chosen way.

use std::fmt;
use std::str::FromStr;

use anabranch_model::{Dice, Timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value as Json, json};

const COMMANDS: [&str; 3] = ["whoami", "notepad.exe", "calculator.exe"];
const USERS: [&str; 3] = ["admin", "evil-guy", "john"];
const SOURCES: [&str; 2] = ["192.168.0.1", "192.168.0.2"];
const DESTINATIONS: [&str; 2] = ["142.250.74.110", "23.13.252.39"];
/// Parts of a million: how fine a share is.
const WHOLE: u64 = 1_000_000;

/// A way of being broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// The message is not base64.
    Base64,
    /// The submission is not UTF-8.
    Utf8,
    /// The submission is not JSON.
    Json,
    /// The submission's id is no UUID.
    SubmissionId,
    /// The device's id is no UUID.
    DeviceId,
    /// The time has a zone.
    Time,
    /// A command line is missing.
    Command,
    /// An address is none.
    Address,
}

impl Fault {
    pub(crate) const ALL: [Fault; 8] = [
        Fault::Base64,
        Fault::Utf8,
        Fault::Json,
        Fault::SubmissionId,
        Fault::DeviceId,
        Fault::Time,
        Fault::Command,
        Fault::Address,
    ];

    fn word(self) -> &'static str {
        match self {
            Fault::Base64 => "base64",
            Fault::Utf8 => "utf8",
            Fault::Json => "json",
            Fault::SubmissionId => "submission-id",
            Fault::DeviceId => "device-id",
            Fault::Time => "time",
            Fault::Command => "command",
            Fault::Address => "address",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Fault::ALL.into_iter().find(|fault| fault.word() == text).ok_or_else(|| {
            let words: Vec<_> = Fault::ALL.into_iter().map(Fault::word).collect();
            format!("`{text}` is no way of being broken: {} are", words.join(", "))
        })
    }
}

/// How many submissions are broken in a way, as a share of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    pub(crate) fault: Fault,
    pub(crate) share: f64,
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (fault, share) = text.split_once('=').ok_or("a share is written like json=0.01")?;
        let share: f64 = share.parse().map_err(|_| format!("`{share}` is no share: it is 0 to 1"))?;
        if !(0.0..=1.0).contains(&share) {
            return Err(format!("`{share}` is no share: it is 0 to 1"));
        }
        Ok(Share { fault: fault.parse()?, share })
    }
}

/// A submission on its way.
pub(crate) struct Submission {
    pub(crate) body: Vec<u8>,
    pub(crate) fault: Option<Fault>,
    pub(crate) events: usize,
}

/// Makes submissions.
pub(crate) struct Sensors {
    pub(crate) devices: Vec<String>,
    pub(crate) faults: Vec<Share>,
    pub(crate) dice: Dice,
}

impl Sensors {
    pub(crate) fn new(devices: usize, faults: Vec<Share>, seed: u64) -> Self {
        let dice = Dice::new(seed);
        Sensors { devices: (0..devices).map(|_| uuid(&dice)).collect(), faults, dice }
    }

    /// The next submission of a device that chance picks.
    pub(crate) fn next(&self, now: Timestamp) -> Submission {
        let fault = self.faults.iter().find(|share| self.happens(share.share)).map(|share| share.fault);
        let (processes, connections) = (3 + self.pick(3), 3 + self.pick(3));
        let mut submission = json!({
            "submission_id": uuid(&self.dice),
            "device_id": self.one_of(&self.devices),
            "time_created": local_time(now),
            "events": {
                "new_process": (0..processes).map(|_| json!({
                    "cmdl": self.one_of(&COMMANDS),
                    "user": self.one_of(&USERS),
                })).collect::<Vec<_>>(),
                "network_connection": (0..connections).map(|_| json!({
                    "source_ip": self.one_of(&SOURCES),
                    "destination_ip": self.one_of(&DESTINATIONS),
                    "destination_port": self.pick(65_536),
                })).collect::<Vec<_>>(),
            },
        });
        let body = match fault {
            None => submission.to_string().into_bytes(),
            Some(fault) => self.break_it(&mut submission, fault),
        };
        let body = match fault {
            Some(Fault::Base64) => body,
            _ => STANDARD.encode(body).into_bytes(),
        };
        Submission { body, fault, events: processes + connections }
    }

    fn break_it(&self, submission: &mut Json, fault: Fault) -> Vec<u8> {
        match fault {
            Fault::Base64 => return b"this is not base64!".to_vec(),
            Fault::Utf8 => return b"{\"submission_id\": \"\xff\xfe\"}".to_vec(),
            Fault::Json => {
                let text = submission.to_string();
                return text.as_bytes()[..text.len() / 2].to_vec();
            }
            Fault::SubmissionId => submission["submission_id"] = json!("not-an-uuid"),
            Fault::DeviceId => submission["device_id"] = json!("not-an-uuid"),
            Fault::Time => submission["time_created"] = json!("2021-03-28T15:44:18+02:00"),
            Fault::Command => submission["events"]["new_process"][0]["cmdl"] = Json::Null,
            Fault::Address => {
                submission["events"]["network_connection"][0]["destination_ip"] = json!("not-an-ip");
            }
        }
        submission.to_string().into_bytes()
    }

    fn happens(&self, share: f64) -> bool {
        ((self.dice.roll() % WHOLE) as f64) < share * WHOLE as f64
    }

    fn pick(&self, count: usize) -> usize {
        (self.dice.roll() % count as u64) as usize
    }

    fn one_of<'a, T>(&self, all: &'a [T]) -> &'a T {
        &all[self.pick(all.len())]
    }
}

fn uuid(dice: &Dice) -> String {
    let (a, b) = (dice.roll(), dice.roll());
    let number = u128::from(a) << 64 | u128::from(b);
    // Version 4, as a device would draw it.
    let number = number & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let digits = format!("{number:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// The time of a device, which does not say in which zone it is.
fn local_time(now: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(i64::try_from(now.as_millis()).unwrap_or(0));
    let moment = moment.map(|moment| format!("{moment:.6}")).unwrap_or_default();
    moment.trim_end_matches('Z').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sensors(faults: Vec<Share>) -> Sensors {
        Sensors::new(3, faults, 11)
    }

    #[test]
    fn valid_submissions_have_what_they_need() {
        let made = sensors(Vec::new()).next(Timestamp::from_millis(1_700_000_000_123));
        let submission: Json = serde_json::from_slice(&STANDARD.decode(&made.body).unwrap()).unwrap();
        assert_eq!(submission["time_created"], "2023-11-14T22:13:20.123000");
        let id = submission["submission_id"].as_str().unwrap();
        assert_eq!((id.len(), &id[14..15]), (36, "4"));
        let count = |kind: &str| submission["events"][kind].as_array().unwrap().len();
        assert_eq!(count("new_process") + count("network_connection"), made.events);
        assert!((6..=10).contains(&made.events));
    }

    #[test]
    fn shares_are_kept_and_every_fault_can_be_made() {
        let sensors = sensors(vec!["json=0.1".parse().unwrap(), "address=0.2".parse().unwrap()]);
        let faults: Vec<_> = (0..5_000).map(|_| sensors.next(Timestamp::EPOCH).fault).collect();
        let share = |fault| faults.iter().filter(|made| **made == fault).count() as f64 / 5_000.0;
        assert!((0.08..0.12).contains(&share(Some(Fault::Json))));
        assert!((0.15..0.21).contains(&share(Some(Fault::Address))));
        for fault in Fault::ALL {
            let broken = self::sensors(vec![Share { fault, share: 1.0 }]).next(Timestamp::EPOCH);
            assert_eq!(broken.fault, Some(fault));
            assert_eq!(fault.to_string().parse::<Fault>().unwrap(), fault);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["json", "json=2", "json=x", "jsn=0.1"] {
            text.parse::<Share>().unwrap_err();
        }
    }
}
