//! What a worker is called if nobody gives it a name.

use std::net::UdpSocket;

use smol_str::SmolStr;

/// An address that belongs to nobody: asking for the way there shows the own address, and sends nothing.
const ELSEWHERE: &str = "192.0.2.1:9";

/// The host, its address, and digits that no other worker has.
pub(crate) fn unique(chance: u64) -> SmolStr {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let address = || {
        let socket = UdpSocket::bind(("0.0.0.0", 0)).ok()?;
        socket.connect(ELSEWHERE).ok()?;
        Some(socket.local_addr().ok()?.ip().to_string())
    };
    let address = address().unwrap_or_else(|| "127.0.0.1".to_owned());
    format!("{host}:{address}:{chance:016x}").into()
}
