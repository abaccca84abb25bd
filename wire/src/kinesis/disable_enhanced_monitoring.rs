//! DisableEnhancedMonitoring.

use super::enable_enhanced_monitoring::change;
pub(super) use super::enable_enhanced_monitoring::{Request, Response};
use crate::context::Context;
use crate::fault::Fault;

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    change(context, request, |before, metric, asked| before && !asked.contains(metric)).await
}
