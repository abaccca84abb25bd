//! Who calls: the signature of a request, and what its scope says about region and service.

mod scope;

pub(crate) use scope::Scope;
