//! Iterators: a place in a shard, sealed, good for a quarter of an hour.

use std::time::Duration;

use anabranch_model::{Position, ShardId, StreamName};

use crate::context::Context;
use crate::dynamodb::fault;
use crate::fault::Fault;

/// How long an iterator is good.
const LIFE: Duration = Duration::from_secs(15 * 60);

/// Where a reader stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) stream: StreamName,
    pub(crate) shard: ShardId,
    pub(crate) position: Position,
    /// What the service wants to find in it again, without spaces.
    pub(crate) note: String,
}

impl Place {
    /// The iterator of this place; no other purpose accepts it.
    pub(crate) async fn seal(&self, context: &Context, purpose: &str) -> Result<String, Fault> {
        let text = self.text();
        context
            .tokens
            .seal(&*context.ports.admin, &*context.clock, purpose, text.as_bytes())
            .await
            .map_err(fault)
    }

    /// The place of an iterator.
    pub(crate) async fn open(context: &Context, purpose: &str, iterator: &str) -> Result<Place, Fault> {
        let opened = context.tokens.open(&*context.ports.admin, purpose, iterator).await.map_err(fault)?;
        let place =
            opened.as_ref().and_then(|opened| Place::parse(std::str::from_utf8(&opened.content).ok()?));
        let (Some(opened), Some(place)) = (opened, place) else {
            return Err(Fault::validation("Invalid ShardIterator"));
        };
        if context.clock.now().since(opened.made_at) > LIFE {
            return Err(Fault::client(
                "ExpiredIteratorException",
                "The shard iterator has expired: it is older than 15 minutes",
            ));
        }
        Ok(place)
    }

    /// Whether everything from here on is still there.
    pub(crate) async fn check_trimmed(&self, context: &Context) -> Result<(), Fault> {
        let changes = context.ports.tables.changes();
        let trimmed = changes.trimmed(&self.stream, &self.shard).await.map_err(fault)?;
        let lost = match (self.position, trimmed) {
            (Position::At(from), Some(trimmed)) => from <= trimmed,
            (Position::After(from), Some(trimmed)) => from < trimmed,
            _ => false,
        };
        match lost {
            true => Err(Fault::client(
                "TrimmedDataAccessException",
                "Attempted access beyond trim horizon: records behind the position have been removed",
            )),
            false => Ok(()),
        }
    }

    /// Names have no spaces, so they separate.
    fn text(&self) -> String {
        let Place { stream, shard, position, note } = self;
        let position = match position {
            Position::TrimHorizon => "horizon".to_owned(),
            Position::Latest => "latest".to_owned(),
            Position::At(sequence) => format!("at{sequence}"),
            Position::After(sequence) => format!("after{sequence}"),
            Position::AtTimestamp(time) => format!("time{}", time.as_millis()),
        };
        format!("{position} {shard} {stream} {note}")
    }

    fn parse(text: &str) -> Option<Place> {
        let [position, shard, stream, note] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let position = match position {
            "horizon" => Position::TrimHorizon,
            "latest" => Position::Latest,
            other => match (other.strip_prefix("at"), other.strip_prefix("after")) {
                (_, Some(digits)) => Position::After(digits.parse().ok()?),
                (Some(digits), _) => Position::At(digits.parse().ok()?),
                (None, None) => {
                    let millis = other.strip_prefix("time")?.parse().ok()?;
                    Position::AtTimestamp(anabranch_model::Timestamp::from_millis(millis))
                }
            },
        };
        Some(Place {
            stream: StreamName::new(stream).ok()?,
            shard: ShardId::new(shard).ok()?,
            position,
            note: note.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::{SequenceNumber, Timestamp};

    use super::*;

    #[test]
    fn places_come_back() {
        let seven = SequenceNumber::from_u128(7);
        for position in [
            Position::TrimHorizon,
            Position::Latest,
            Position::At(seven),
            Position::After(seven),
            Position::AtTimestamp(Timestamp::from_millis(5)),
        ] {
            let place = Place {
                stream: StreamName::new("changes-1").unwrap(),
                shard: ShardId::numbered(3),
                position,
                note: "NEW_IMAGE".to_owned(),
            };
            assert_eq!(Place::parse(&place.text()), Some(place));
        }
        for text in ["", "at a b v", "at7 s v", "at7 s t u v", "other s t v", "after s t v", "horizon s/ t v"]
        {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }
}
