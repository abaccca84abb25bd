//! Kinesis Data Streams: a file for each operation, and what they share.

mod errors;
mod stream;

mod create_stream;
mod delete_stream;
mod list_streams;
mod put_record;

use http::Response;

use crate::answer::Answer;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;
use crate::wire::Call;

/// The table of a service: which operations it has, and who does them.
macro_rules! operations {
    ($($name:literal => $module:ident,)*) => {
        /// The names of the operations.
        pub(crate) const OPERATIONS: &[&str] = &[$($name),*];

        /// Answers a call.
        pub(crate) async fn call(context: &Context, call: &Call) -> Result<Response<Body>, Fault> {
            match call.operation.as_str() {
                $($name => {
                    let request = call.protocol.parse(&call.body)?;
                    // The futures of the operations differ much in size; only the one that runs is made.
                    Box::pin($module::handle(context, request)).await?.render(call.protocol)
                })*
                other => Err(Fault::unknown_operation(other)),
            }
        }
    };
}

operations! {
    "CreateStream" => create_stream,
    "DeleteStream" => delete_stream,
    "ListStreams" => list_streams,
    "PutRecord" => put_record,
}
