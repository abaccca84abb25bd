//! The table of a service: which operations it has, and who does them.

/// Makes `OPERATIONS`, the names, and `call`, which answers a call.
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
                    let request = call.protocol.parse_for(call.service.package(), &call.body)?;
                    // The futures of the operations differ much in size; only the one that runs is made.
                    Box::pin($module::handle(context, request)).await?.render(call.protocol)
                })*
                other => Err($crate::fault::Fault::unknown_operation(other)),
            }
        }
    };
}

pub(crate) use operations;
