//! Asks before something is removed for good.

use std::io::{self, IsTerminal, Write};

use crate::failure::Failure;

/// Asks the person at the terminal. `what` is done after a yes only.
pub(crate) async fn confirm(what: &str, question: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage(
            format!("{what} needs a confirmation, and there is no terminal to ask on"),
            "add --yes",
        ));
    }
    let question = format!("{question} [y/N] ");
    let answer = tokio::task::spawn_blocking(move || {
        let mut stderr = io::stderr();
        stderr.write_all(question.as_bytes())?;
        stderr.flush()?;
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    });
    let line = answer.await.ok().and_then(Result::ok).unwrap_or_default();
    if matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Failure::new("refused", "nothing was removed", "answer y, or add --yes"))
}
