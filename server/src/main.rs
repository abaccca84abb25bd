//! The `anabranch` binary. Everything it does is in the library beside it.

fn main() -> std::process::ExitCode {
    anabranch_server::run()
}
