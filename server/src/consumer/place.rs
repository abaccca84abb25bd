//! Where a checkpoint is set to.

use anabranch_consumer::{Application, Checkpoint, Lease};
use anabranch_model::{
    Error, Next, Position, ReadLimit, Result, SequenceNumber, ShardId, StreamName, StreamStore, Timestamp,
};

use crate::failure::Failure;
use crate::quantity::parse_moment;

/// A place in every shard.
pub(super) enum Place {
    At(Checkpoint),
    Moment(StreamName, Timestamp),
}

impl Place {
    pub(super) fn parse(
        text: &str,
        stream: Option<&StreamName>,
        now: Timestamp,
    ) -> std::result::Result<Self, Failure> {
        match text {
            "trim-horizon" => return Ok(Place::At(Checkpoint::TrimHorizon)),
            "latest" => return Ok(Place::At(Checkpoint::Latest)),
            _ => {}
        }
        if let Ok(sequence) = text.parse::<SequenceNumber>() {
            return Ok(Place::At(Application::before(sequence)));
        }
        let Some(moment) = parse_moment(text, now) else {
            return Err(Failure::usage(
                format!("`{text}` is no place in a shard"),
                "say trim-horizon, latest, a sequence number or a time",
            ));
        };
        match stream {
            Some(stream) => Ok(Place::Moment(stream.clone(), moment)),
            None => Err(Failure::usage(
                "a lease holds numbers and no times",
                "say with --stream NAME whose records tell which numbers that is",
            )),
        }
    }

    /// The checkpoint of this place in the shard of a lease.
    pub(super) async fn checkpoint(&self, streams: &dyn StreamStore, lease: &Lease) -> Result<Checkpoint> {
        let (stream, moment) = match self {
            Place::At(checkpoint) => return Ok(*checkpoint),
            Place::Moment(stream, moment) => (stream, *moment),
        };
        let shard = ShardId::new(lease.shard())?;
        let limit = ReadLimit { records: 1, bytes: 1 };
        let batch = match streams.read(stream, &shard, Position::AtTimestamp(moment), limit).await {
            Ok(batch) => batch,
            // What retention removed is done with.
            Err(Error::ShardNotFound(..)) => return Ok(lease.checkpoint),
            Err(error) => return Err(error),
        };
        Ok(match (batch.records.first(), batch.next) {
            (Some(record), _) => Application::before(record.sequence),
            (None, Next::Ended(_)) => lease.checkpoint,
            (None, Next::At(Position::After(sequence))) => Checkpoint::behind(sequence),
            (None, Next::At(_)) => Checkpoint::TrimHorizon,
        })
    }
}
