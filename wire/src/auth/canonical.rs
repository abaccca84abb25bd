//! The one spelling of a request that both sides sign.

use http::header::{HOST, HeaderName};
use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::is_presigned;

/// What is written as it is everywhere.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same in a path, whose slashes stay.
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');

/// The parameter of a signature in the query, which cannot sign itself.
pub(super) const SIGNATURE: &str = "X-Amz-Signature";
/// What HTTP/2 has in place of the header `Host`. Some clients sign it under this name.
pub(super) const AUTHORITY: &str = ":authority";

/// The request as it is signed; none if a header that should be signed is not there.
pub(super) fn request(parts: &Parts, signed: &[&str], payload: &str, encode_twice: bool) -> Option<String> {
    let path = if encode_twice {
        utf8_percent_encode(parts.uri.path(), PATH).to_string()
    } else {
        let bytes: Vec<u8> = percent_decode_str(parts.uri.path()).collect();
        percent_encoding::percent_encode(&bytes, PATH).to_string()
    };
    let mut headers = String::new();
    for name in signed {
        headers.push_str(name);
        headers.push(':');
        headers.push_str(&header(parts, name)?);
        headers.push('\n');
    }
    let query = query(parts.uri.query().unwrap_or(""));
    let method = parts.method.as_str();
    Some(format!("{method}\n{path}\n{query}\n{headers}\n{}\n{payload}", signed.join(";")))
}

/// A header with its values joined and the spaces in them brought together.
fn header(parts: &Parts, name: &str) -> Option<String> {
    if name == AUTHORITY {
        return parts.uri.authority().map(|authority| authority.as_str().to_owned());
    }
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut values = Vec::new();
    for value in parts.headers.get_all(&name) {
        values.push(plain(std::str::from_utf8(value.as_bytes()).ok()?));
    }
    if !values.is_empty() {
        return Some(values.join(","));
    }
    // HTTP/2 names the host in place of the header.
    match parts.uri.authority().filter(|_| name == HOST) {
        Some(authority) => Some(authority.as_str().to_owned()),
        None => moved(parts, name.as_str()),
    }
}

/// A header of AWS that stands in the query of an address, where some clients put what they have signed as a header.
fn moved(parts: &Parts, name: &str) -> Option<String> {
    let query = parts.uri.query().filter(|query| is_presigned(query) && name.starts_with("x-amz-"))?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
    percent_decode_str(&value.replace('+', " ")).decode_utf8().ok().map(|value| plain(&value))
}

/// A value without the spaces that are not signed.
fn plain(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn query(text: &str) -> String {
    let encode = |text: &str| {
        let text = text.replace('+', " ");
        let bytes: Vec<u8> = percent_decode_str(&text).collect();
        percent_encoding::percent_encode(&bytes, UNRESERVED).to_string()
    };
    let mut pairs: Vec<(String, String)> = text
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (encode(name), encode(value)))
        .filter(|(name, _)| name != SIGNATURE)
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn names_values_and_paths_have_one_spelling() {
        let parts = Request::get("/b/a%2Fb//c%20d%c3%a4~+?b=2&a=x%20y&a=+&c&X-Amz-Signature=00&%41=1")
            .header("host", "localhost:4566")
            .header("x-amz-meta-a", "  one   two ")
            .header("x-amz-meta-a", "three")
            .body(())
            .unwrap()
            .into_parts()
            .0;
        let canonical = request(&parts, &["host", "x-amz-meta-a"], "UNSIGNED-PAYLOAD", false).unwrap();
        assert_eq!(
            canonical,
            "GET\n/b/a/b//c%20d%C3%A4~%2B\nA=1&a=%20&a=x%20y&b=2&c=\nhost:localhost:4566\n\
             x-amz-meta-a:one two,three\n\nhost;x-amz-meta-a\nUNSIGNED-PAYLOAD"
        );
        assert_eq!(request(&parts, &["host", "x-amz-date"], "", false), None);
        assert_eq!(request(&parts, &[AUTHORITY], "", false), None, "it did not come by HTTP/2");
        let twice = request(&parts, &[], "", true).unwrap();
        assert!(twice.starts_with("GET\n/b/a%252Fb//c%2520d%25c3%25a4~%2B\n"), "{twice}");
    }

    #[test]
    fn by_http2_the_host_has_two_names() {
        let parts = Request::get("http://localhost:4566/").body(()).unwrap().into_parts().0;
        for name in ["host", AUTHORITY] {
            let canonical = request(&parts, &[name], "", false).unwrap();
            assert_eq!(canonical, format!("GET\n/\n\n{name}:localhost:4566\n\n{name}\n"));
        }
    }
}
