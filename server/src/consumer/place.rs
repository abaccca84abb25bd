//! Where a checkpoint is set to.

use anabranch_consumer::{Application, Checkpoint, Lease};
use anabranch_model::{
    Error, Next, Position, ReadLimit, SequenceNumber, ShardId, StreamName, StreamStore, Timestamp,
};

use crate::failure::Failure;
use crate::quantity::parse_moment;

/// A place in every shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    At(Checkpoint),
    Moment(Timestamp),
}

impl Place {
    /// Understands what a person writes.
    pub(super) fn parse(text: &str, now: Timestamp) -> Result<Self, Failure> {
        match text.to_ascii_lowercase().as_str() {
            "trim-horizon" => return Ok(Place::At(Checkpoint::TrimHorizon)),
            "latest" => return Ok(Place::At(Checkpoint::Latest)),
            _ => {}
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Place::At(Application::before(text.parse::<SequenceNumber>()?)));
        }
        parse_moment(text, now).map(Place::Moment).ok_or_else(|| {
            Failure::usage(
                format!("`{text}` is no place in a shard"),
                "say trim-horizon, latest, a sequence number, or a time such as 2026-01-31T12:00:00Z or `10m ago`",
            )
        })
    }

    /// What is older than this is not wanted; none if nothing but what is read now is.
    pub(super) fn since(self) -> Option<Timestamp> {
        match self {
            Place::At(Checkpoint::TrimHorizon) => Some(Timestamp::EPOCH),
            Place::Moment(moment) => Some(moment),
            Place::At(_) => None,
        }
    }

    /// The checkpoint of this place in the shard of a lease. `stream` is the stream of the lease, if it is known.
    pub(super) async fn checkpoint(
        self,
        streams: &dyn StreamStore,
        lease: &Lease,
        stream: Option<&StreamName>,
    ) -> Result<Checkpoint, Failure> {
        let moment = match self {
            Place::At(checkpoint) => return Ok(checkpoint),
            Place::Moment(moment) => moment,
        };
        let Some(stream) = stream else {
            return Err(Failure::usage(
                "a lease holds numbers and no times",
                "say with --stream NAME whose records tell which numbers that is",
            ));
        };
        let shard = ShardId::new(lease.shard())?;
        let limit = ReadLimit { records: 1, bytes: 1 };
        let batch = match streams.read(stream, &shard, Position::AtTimestamp(moment), limit).await {
            Ok(batch) => batch,
            // What retention removed is done with.
            Err(Error::ShardNotFound(..)) => return Ok(lease.checkpoint),
            Err(error) => return Err(error.into()),
        };
        Ok(match (batch.records.first(), batch.next) {
            (Some(record), _) => Application::before(record.sequence),
            (None, Next::Ended(_)) => lease.checkpoint,
            (None, Next::At(Position::After(sequence))) => Checkpoint::behind(sequence),
            (None, Next::At(Position::At(sequence))) => Application::before(sequence),
            (None, Next::At(_)) => Checkpoint::TrimHorizon,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_understood() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let parse = |text| Place::parse(text, now).ok();
        assert_eq!(parse("trim-horizon"), Some(Place::At(Checkpoint::TrimHorizon)));
        assert_eq!(parse("LATEST"), Some(Place::At(Checkpoint::Latest)));
        // A record is the next one if everything before it is done.
        assert_eq!(
            parse("42"),
            Some(Place::At(Checkpoint::behind(SequenceNumber::from_u128(41)))),
            "the number itself is read again"
        );
        assert_eq!(parse("0"), Some(Place::At(Checkpoint::TrimHorizon)));
        assert_eq!(parse("10m ago"), Some(Place::Moment(Timestamp::from_millis(1_699_999_400_000))));
        for text in ["", "soon", "-1", "042x"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
