//! XML as S3 speaks it.

mod read;
mod write;

pub(super) use read::{Element, malformed};
pub(super) use write::Xml;
