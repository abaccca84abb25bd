//! Keeps web pages and strangers out. A browser lets any page send requests to this machine: directly, which it marks with
//! `Origin`, or by a name that the page's owner points at 127.0.0.1 (DNS rebinding), which shows in `Host`. A port that is
//! open to other machines, because callers sign, still answers what is not signed to this machine only.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// What is let through.
#[derive(Clone, Default)]
pub(crate) struct Guard {
    /// Which paths need no guard, because whoever is behind them asks callers who they are.
    pub(crate) unguarded: Option<fn(&str) -> bool>,
    /// Names that whoever runs this server has given to it. A web page has none of them.
    pub(crate) hosts: Arc<[String]>,
}

/// Both ends of a connection.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) here: IpAddr,
    pub(super) there: IpAddr,
}

impl Ends {
    /// Whether the caller is on this machine.
    pub(super) fn are_one_machine(self) -> bool {
        let there = self.there.to_canonical();
        there.is_loopback() || there == self.here.to_canonical()
    }
}

/// Refuses requests of web pages, and of other machines.
pub(crate) async fn refuse_strangers(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    if guard.unguarded.is_some_and(|unguarded| unguarded(request.uri().path())) {
        return next.run(request).await;
    }
    let ends = request.extensions().get::<Ends>().copied();
    match refusal(request.headers(), request.uri(), ends, &guard.hosts) {
        Some(message) => {
            let body = json!({ "error": { "code": "invalid", "message": message }, "message": message });
            (StatusCode::FORBIDDEN, Json(body)).into_response()
        }
        None => next.run(request).await,
    }
}

fn refusal(headers: &HeaderMap, uri: &Uri, ends: Option<Ends>, hosts: &[String]) -> Option<&'static str> {
    if ends.is_some_and(|ends| !ends.are_one_machine()) {
        return Some("the control API answers this machine only");
    }
    if headers.contains_key(header::ORIGIN) {
        return Some("requests from web pages are refused: this one has an Origin header");
    }
    let mut named = headers.get_all(header::HOST).iter();
    let named_local = match (named.next(), named.next()) {
        (Some(host), None) => host.to_str().is_ok_and(|host| is_ours(host, ends, hosts)),
        // HTTP/2 names the host in place of the header.
        (None, _) => uri.authority().is_some(),
        _ => false,
    };
    let asked_local = uri.authority().is_none_or(|authority| is_ours(authority.as_str(), ends, hosts));
    (!named_local || !asked_local).then_some(
        "the Host header must be localhost or a loopback address: other names may be a web page in disguise",
    )
}

/// Whether `host` can only mean this machine, or is one of its own names or below one.
fn is_ours(host: &str, ends: Option<Ends>, hosts: &[String]) -> bool {
    let name = without_port(host).to_ascii_lowercase();
    let below = |own: &String| {
        name.strip_suffix(own.as_str()).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    is_local(host, ends) || hosts.iter().any(below)
}

/// Whether `host`, with or without a port, can only mean this machine. Names below `localhost` do, and buckets have such
/// names; so does the address that the caller has reached.
fn is_local(host: &str, ends: Option<Ends>) -> bool {
    let name = without_port(host);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or(name);
    let reached =
        |address: IpAddr| ends.is_some_and(|ends| ends.here.to_canonical() == address.to_canonical());
    last.eq_ignore_ascii_case("localhost")
        || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback() || reached(address))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn loopback_is_recognised() {
        for host in [
            "localhost",
            "LOCALHOST:4566",
            "bucket.localhost:4566",
            "127.0.0.1",
            "127.0.0.1:4566",
            "127.1.2.3",
            "[::1]:4566",
            "[::1]",
        ] {
            assert!(is_local(host, None), "{host}");
        }
        for host in [
            "",
            "example.org",
            "localhost.example.org",
            "127.0.0.1.example.org",
            "0.0.0.0:4566",
            "[::]:4566",
            "10.0.0.1",
            "localhost:4566@example.org",
            "2130706433",
            "localhost.",
            "xlocalhost",
        ] {
            assert!(!is_local(host, None), "{host}");
        }
    }

    #[test]
    fn origin_and_foreign_hosts_are_refused() {
        let refusal = |headers: &HeaderMap, uri: &Uri, ends| super::refusal(headers, uri, ends, &[]);
        let uri = Uri::from_static("/_anabranch/v1/streams");
        let mut headers = HeaderMap::new();
        assert!(refusal(&headers, &uri, None).is_some(), "no Host at all");
        assert!(refusal(&headers, &Uri::from_static("http://localhost:4566/"), None).is_none(), "HTTP/2");
        assert!(refusal(&headers, &Uri::from_static("http://example.org/"), None).is_some());
        headers.insert(header::HOST, HeaderValue::from_static("localhost:4566"));
        assert!(refusal(&headers, &uri, None).is_none());
        assert!(refusal(&headers, &Uri::from_static("http://example.org/"), None).is_some());
        let ends = |here: &str, there: &str| {
            Some(Ends { here: here.parse().unwrap(), there: there.parse().unwrap() })
        };
        for there in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "::ffff:10.0.0.1"] {
            assert!(refusal(&headers, &uri, ends("10.0.0.1", there)).is_none(), "{there}");
        }
        for there in ["10.0.0.2", "::", "::ffff:10.0.0.2"] {
            assert!(refusal(&headers, &uri, ends("10.0.0.1", there)).is_some(), "{there}");
        }
        headers.insert(header::HOST, HeaderValue::from_static("10.0.0.1:4566"));
        assert!(refusal(&headers, &uri, ends("10.0.0.1", "10.0.0.1")).is_none());
        assert!(refusal(&headers, &uri, ends("10.0.0.3", "10.0.0.3")).is_some());
        headers.insert(header::HOST, HeaderValue::from_static("localhost:4566"));
        headers.append(header::HOST, HeaderValue::from_static("example.org"));
        assert!(refusal(&headers, &uri, None).is_some(), "two Hosts");
        headers.insert(header::HOST, HeaderValue::from_static("localhost:4566"));
        headers.insert(header::ORIGIN, HeaderValue::from_static("null"));
        assert!(refusal(&headers, &uri, None).is_some());
    }

    #[test]
    fn names_of_the_server_are_let_through() {
        let hosts = ["s3.example.org".to_owned()];
        for host in ["s3.example.org", "S3.Example.org:4566", "photos.s3.example.org", "localhost"] {
            assert!(is_ours(host, None, &hosts), "{host}");
        }
        for host in ["example.org", "xs3.example.org", "s3.example.org.evil.org", "s3.example.org.", ""] {
            assert!(!is_ours(host, None, &hosts), "{host}");
        }
        assert!(!is_ours("photos.s3.example.org", None, &[]));
    }
}
