//! The table of a service that speaks JSON or CBOR only.

/// Which operations a service has, and who does them: one line for each, with the module that has its `handle`.
macro_rules! operations {
    ($($name:literal => $module:ident,)*) => {
        /// The names of the operations.
        pub(crate) const OPERATIONS: &[&str] = &[$($name),*];

        /// Answers a call.
        pub(crate) async fn call(
            context: &$crate::context::Context,
            call: &$crate::wire::Call,
        ) -> Result<http::Response<$crate::receive::Body>, $crate::fault::Fault> {
            use $crate::answer::Answer as _;
            match call.operation.as_str() {
                $($name => {
                    let request = call.protocol.parse(&call.body)?;
                    // The futures of the operations differ much in size; only the one that runs is made.
                    Box::pin($module::handle(context, request)).await?.render(call.protocol)
                })*
                other => Err($crate::fault::Fault::unknown_operation(other)),
            }
        }
    };
}

pub(crate) use operations;
