//! CloudWatch: the one call by which clients report figures about themselves. What they report is shown with the
//! metrics of the server.

mod numbers;
mod put_metric_data;
mod series;

use http::{Response, StatusCode};

use crate::context::Context;
use crate::fault::Fault;
use crate::protocol::{Protocol, document, parse_form};
use crate::receive::Body;
use crate::wire::Call;

pub(crate) use series::State;

const NAMESPACE: &str = "http://monitoring.amazonaws.com/doc/2010-08-01/";

/// The names of the operations.
pub(crate) const OPERATIONS: &[&str] = &["PutMetricData"];

/// Answers a call.
pub(crate) async fn call(context: &Context, call: &Call) -> Result<Response<Body>, Fault> {
    if call.operation != "PutMetricData" {
        let fault = Fault::unknown_operation(&call.operation);
        return Err(Fault { query_code: Some("InvalidAction"), ..fault });
    }
    let body = match call.protocol {
        Protocol::Query => {
            put_metric_data::handle(context, parse_form(&call.form)?)?;
            document(&call.operation, NAMESPACE, None, &context.request_id).into_bytes()
        }
        protocol => {
            put_metric_data::handle(context, protocol.parse(&call.body)?)?;
            protocol.encode(&serde_json::Map::new())?
        }
    };
    Ok(call.protocol.response(StatusCode::OK, body))
}
