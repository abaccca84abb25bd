//! Messages that the cleaner carries on: their bodies stand in a segment that is to be recycled, and are written again as
//! they are. The rows that refer to them follow with the next checkpoint.

use std::collections::BTreeMap;

use anabranch_model::{Error, Result};
use bytes::Bytes;

use super::frame::{Frame, write};
use super::keys;
use crate::core::{Core, Halt};
use crate::journal::sequencer::Done;
use crate::journal::{Refusal, Urgency};

impl Core {
    /// Writes bodies again that are still there. `settle` waits until frames are durable.
    pub fn write_messages_again(&self, bodies: Vec<Bytes>, settle: &mut dyn FnMut(Done)) -> Result<()> {
        let mut by_owner: BTreeMap<u64, Vec<Bytes>> = BTreeMap::new();
        for body in bodies {
            let owner = keys::owner_of(&body).expect("the key of a body begins with its owner");
            by_owner.entry(owner).or_default().push(body);
        }
        for (number, mut bodies) in by_owner {
            while !bodies.is_empty() {
                if let Some(done) = self.write_some_again(number, &mut bodies)? {
                    settle(done);
                }
            }
        }
        Ok(())
    }

    /// Takes as many as one frame should have. Nobody changes the queue meanwhile, so none that goes comes back.
    fn write_some_again(&self, number: u64, bodies: &mut Vec<Bytes>) -> Result<Option<Done>> {
        let owns = |queue: &std::sync::Arc<super::held::Queue>| queue.lock().number == number;
        // Without its queue a body is swept up.
        let Some(queue) = self.queues.all().into_iter().find(owns) else {
            bodies.clear();
            return Ok(None);
        };
        let mut frame = match Frame::new(self, &queue) {
            Ok(frame) if frame.held.number == number => frame,
            Ok(_) | Err(Error::QueueNotFound(_)) => {
                bodies.clear();
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        while let Some(key) = bodies.last() {
            let body = frame.get(key)?;
            if !frame.is_empty() && frame.would_be_large(body.as_ref().map_or(0, Bytes::len)) {
                break;
            }
            let key = bodies.pop().expect("it was looked at");
            if let Some(body) = body {
                frame.bytes += body.len();
                frame.put(key, body);
            }
        }
        if frame.is_empty() {
            return Ok(None);
        }
        let none = self.rows.accept(Vec::new());
        match write(self, none, vec![frame], Vec::new(), Urgency::Upkeep, &mut None) {
            Ok((_, done)) => Ok(Some(done)),
            Err(Halt::Refused(Refusal::Stopped(reason))) => Err(Error::Stopped(reason)),
            Err(Halt::Refused(_)) => Err(Error::DiskFull),
            Err(Halt::Failed(error)) => Err(error),
        }
    }
}
