//! The log of a disk, and quick access to what must survive after any prefix of it.
//!
//! Replaying from the start for every crash would be quadratic. So the replay leaves a copy behind every few
//! operations, made on first use and kept: a disk that never crashes pays only for its log.

use crate::durable::Durable;
use crate::operation::Operation;

/// A replay passes at most this many operations and bytes before it meets a copy; that bounds one crash.
const OPERATIONS_BETWEEN_COPIES: usize = 32;
const BYTES_BETWEEN_COPIES: usize = 256 * 1024;

/// Every operation since the disk was made, in order.
#[derive(Debug)]
pub(crate) struct History {
    operations: Vec<Operation>,
    /// Never empty; the first is the disk before any operation.
    copies: Vec<Copy>,
}

#[derive(Clone, Debug)]
struct Copy {
    operation: usize,
    durable: Durable,
}

impl History {
    /// A history that starts from a disk on which everything is durable.
    pub(crate) fn new(start: Durable) -> Self {
        History { operations: Vec::new(), copies: vec![Copy { operation: 0, durable: start }] }
    }

    /// Number of operations so far.
    pub(crate) fn len(&self) -> usize {
        self.operations.len()
    }

    /// Adds an operation that has just been done.
    pub(crate) fn push(&mut self, operation: Operation) {
        self.operations.push(operation);
    }

    /// The operation with this index.
    pub(crate) fn operation(&self, index: usize) -> Option<&Operation> {
        self.operations.get(index)
    }

    /// What must and may survive after the first `operation` operations.
    pub(crate) fn durable_after(&mut self, operation: usize) -> Durable {
        assert!(
            operation <= self.len(),
            "a crash after {operation} operations, of which there are {}",
            self.len()
        );
        let nearest = self.copies.partition_point(|copy| copy.operation <= operation) - 1;
        let beyond_copies = nearest + 1 == self.copies.len();
        let Copy { operation: mut done, mut durable } = self.copies[nearest].clone();
        let (mut operations, mut bytes) = (0, 0);
        while done < operation {
            durable.apply(&self.operations[done]);
            operations += 1;
            bytes += self.operations[done].weight();
            done += 1;
            let due = operations >= OPERATIONS_BETWEEN_COPIES || bytes >= BYTES_BETWEEN_COPIES;
            if beyond_copies && due {
                self.copies.push(Copy { operation: done, durable: durable.clone() });
                (operations, bytes) = (0, 0);
            }
        }
        durable
    }
}
