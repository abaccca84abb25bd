//! Iterators: a place in a shard, sealed, good for a quarter of an hour.

use std::time::Duration;

use anabranch_model::{Position, ShardId, StreamName};

use crate::context::Context;
use crate::dynamodb::fault;
use crate::fault::Fault;

/// How long an iterator is good.
const LIFE: Duration = Duration::from_secs(15 * 60);
const PURPOSE: &str = "change-iterator";

/// Where a reader stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) stream: StreamName,
    pub(super) shard: ShardId,
    pub(super) position: Position,
    /// The view of the stream, which every record repeats.
    pub(super) view: String,
}

impl Place {
    /// The iterator of this place.
    pub(super) async fn seal(&self, context: &Context) -> Result<String, Fault> {
        let text = self.text();
        context
            .tokens
            .seal(&*context.ports.admin, &*context.clock, PURPOSE, text.as_bytes())
            .await
            .map_err(fault)
    }

    /// The place of an iterator.
    pub(super) async fn open(context: &Context, iterator: &str) -> Result<Place, Fault> {
        let opened = context.tokens.open(&*context.ports.admin, PURPOSE, iterator).await.map_err(fault)?;
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

    /// Names have no spaces, so they separate.
    fn text(&self) -> String {
        let Place { stream, shard, position, view } = self;
        let position = match position {
            Position::TrimHorizon => "horizon".to_owned(),
            Position::Latest => "latest".to_owned(),
            Position::At(sequence) => format!("at{sequence}"),
            Position::After(sequence) => format!("after{sequence}"),
            Position::AtTimestamp(time) => format!("time{}", time.as_millis()),
        };
        format!("{position} {shard} {stream} {view}")
    }

    fn parse(text: &str) -> Option<Place> {
        let [position, shard, stream, view] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
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
            view: view.to_owned(),
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
                view: "NEW_IMAGE".to_owned(),
            };
            assert_eq!(Place::parse(&place.text()), Some(place));
        }
        for text in ["", "at a b v", "at7 s v", "at7 s t u v", "other s t v", "after s t v", "horizon s/ t v"]
        {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }
}
