//! A server with keys lets in what is signed: in headers, in addresses, and chunk by chunk.

mod harness;
mod s3_client;

use std::time::Duration;

use anabranch_model::Clock;
use anabranch_wire::Keys;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use harness::{Harness, json_request, whole};
use hmac::{Hmac, KeyInit, Mac};
use http::Request;
use http_body_util::Full;
use s3_client::{Answer, request};
use sha1::Sha1;
use sha2::{Digest, Sha256};

const KEY: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

async fn start() -> Harness {
    let harness = Harness::with_keys(Keys::new([(KEY.to_owned(), SECRET.to_owned())])).await;
    let made = Signer::new(&harness).send(&harness, "PUT /photos", &[], "").await;
    assert_eq!(made.status, 200, "{}", made.text());
    harness
}

/// Signs as the documentation tells, for a client at this moment.
struct Signer {
    date: String,
    host: String,
    /// Under which name the host is signed.
    host_name: &'static str,
    secret: String,
    service: &'static str,
    /// The signature that the next chunk goes on from.
    previous: String,
}

/// What somebody on the way does to the chunks of a body.
type Change = fn(&mut Vec<String>);

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

impl Signer {
    fn new(harness: &Harness) -> Self {
        let millis = harness.clock.now().as_millis() as i64;
        let moment = jiff::Timestamp::from_millisecond(millis).expect("a moment");
        Signer {
            date: moment.strftime("%Y%m%dT%H%M%SZ").to_string(),
            host: harness.address.to_string(),
            host_name: "host",
            secret: SECRET.to_owned(),
            service: "s3",
            previous: String::new(),
        }
    }

    fn scope(&self) -> String {
        format!("{}/us-east-1/{}/aws4_request", &self.date[..8], self.service)
    }

    fn sign(&self, text: &str) -> String {
        let mut key = mac(format!("AWS4{}", self.secret).as_bytes(), &self.date[..8]);
        for part in ["us-east-1", self.service, "aws4_request"] {
            key = mac(&key, part);
        }
        hex::encode(mac(&key, text))
    }

    fn sign_request(&mut self, canonical: &str) -> String {
        let text =
            format!("AWS4-HMAC-SHA256\n{}\n{}\n{}", self.date, self.scope(), hash(canonical.as_bytes()));
        self.previous = self.sign(&text);
        self.previous.clone()
    }

    /// A request signed in its header. The query must be in order.
    fn signed(
        &mut self,
        line: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        payload: &str,
    ) -> Request<Full<bytes::Bytes>> {
        let (method, path) = line.split_once(' ').expect("a method and a path");
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut all = vec![
            (self.host_name, self.host.as_str()),
            ("x-amz-content-sha256", payload),
            ("x-amz-date", &self.date),
        ];
        all.extend_from_slice(headers);
        all.sort();
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let listed: String = all.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let canonical = format!("{method}\n{path}\n{query}\n{listed}\n{names}\n{payload}");
        let mut sent: Vec<(&str, &str)> = headers.to_vec();
        let (date, scope) = (self.date.clone(), self.scope());
        let signature = self.sign_request(&canonical);
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={signature}"
        );
        sent.extend([
            ("authorization", authorization.as_str()),
            ("x-amz-date", &date),
            ("x-amz-content-sha256", payload),
        ]);
        request(line, &sent, body.to_vec())
    }

    async fn send(&mut self, harness: &Harness, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let request = self.signed(line, headers, body.as_bytes(), &hash(body.as_bytes()));
        answer(harness, request).await
    }

    /// An address that is signed, with what stands in its query already.
    fn presigned(&mut self, line: &str, expires: u64) -> String {
        let (method, path) = line.split_once(' ').expect("a method and a path");
        let (path, more) = path.split_once('?').unwrap_or((path, ""));
        let own = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={KEY}%2F{}&X-Amz-Date={}&X-Amz-Expires={expires}\
             &X-Amz-SignedHeaders=host",
            self.scope().replace('/', "%2F"),
            self.date
        );
        let mut words: Vec<&str> =
            more.split('&').chain(own.split('&')).filter(|word| !word.is_empty()).collect();
        words.sort_unstable();
        let query = words.join("&");
        let canonical = format!("{method}\n{path}\n{query}\nhost:{}\n\nhost\nUNSIGNED-PAYLOAD", self.host);
        let signature = self.sign_request(&canonical);
        format!("{method} {path}?{query}&X-Amz-Signature={signature}")
    }

    /// The next chunk of a body, signed.
    fn chunk(&mut self, bytes: &str) -> String {
        let text = format!(
            "AWS4-HMAC-SHA256-PAYLOAD\n{}\n{}\n{}\n{}\n{}",
            self.date,
            self.scope(),
            self.previous,
            hash(b""),
            hash(bytes.as_bytes())
        );
        self.previous = self.sign(&text);
        let end = if bytes.is_empty() { "" } else { "\r\n" };
        format!("{:x};chunk-signature={}\r\n{bytes}{end}", bytes.len(), self.previous)
    }

    /// What follows the last chunk, signed.
    fn trailer(&mut self, trailer: &str) -> String {
        let text = format!(
            "AWS4-HMAC-SHA256-TRAILER\n{}\n{}\n{}\n{}",
            self.date,
            self.scope(),
            self.previous,
            hash(format!("{trailer}\n").as_bytes())
        );
        format!("{trailer}\r\nx-amz-trailer-signature:{}\r\n\r\n", self.sign(&text))
    }
}

async fn answer(harness: &Harness, request: Request<Full<bytes::Bytes>>) -> Answer {
    let (status, headers, body) = whole(harness.send(request).await).await;
    Answer { status, headers, body }
}

#[tokio::test]
async fn only_signed_requests_are_let_in() {
    let harness = start().await;
    let mut signer = Signer::new(&harness);
    let headers = [("x-amz-meta-a", "b")];
    let put = signer.send(&harness, "PUT /photos/a%20b/%C3%A4", &headers, "hello").await;
    assert_eq!(put.status, 200, "{}", put.text());
    let got = signer.send(&harness, "GET /photos/a%20b/%C3%A4?response-content-type=x%2Fy", &[], "").await;
    assert_eq!((got.status.as_u16(), &got.body[..], got.header("content-type")), (200, &b"hello"[..], "x/y"));

    let unsigned = answer(&harness, request("GET /photos/a", &[], "")).await;
    assert_eq!(unsigned.refusal(), "403 AccessDenied");
    let mut stranger = Signer { secret: "other".into(), ..Signer::new(&harness) };
    assert_eq!(
        stranger.send(&harness, "GET /photos/a", &[], "").await.refusal(),
        "403 SignatureDoesNotMatch"
    );
    let mut elsewhere = Signer { service: "kinesis", ..Signer::new(&harness) };
    let refused = elsewhere.send(&harness, "GET /photos/a", &[], "").await;
    assert_eq!(refused.refusal(), "400 AuthorizationHeaderMalformed");

    let good = || Signer::new(&harness).signed("PUT /photos/a", &[], b"hello", &hash(b"hello"));
    let mut other_path = good();
    *other_path.uri_mut() = "/photos/b".parse().unwrap();
    assert_eq!(answer(&harness, other_path).await.refusal(), "403 SignatureDoesNotMatch");
    let mut other_body = good();
    *other_body.body_mut() = Full::new("hullo".into());
    assert_eq!(answer(&harness, other_body).await.refusal(), "400 XAmzContentSHA256Mismatch");
    let mut silent = good();
    silent.headers_mut().remove("x-amz-content-sha256");
    let silent = answer(&harness, silent).await;
    assert_eq!(silent.refusal(), "400 InvalidRequest");
    assert!(silent.text().contains("header for this request: x-amz-content-sha256"), "{}", silent.text());
    let mut added = good();
    added.headers_mut().insert("x-amz-meta-x", "1".parse().unwrap());
    assert_eq!(answer(&harness, added).await.refusal(), "403 AccessDenied");
    assert_eq!(signer.send(&harness, "GET /photos/b", &[], "").await.refusal(), "404 NoSuchKey");
    assert_eq!(signer.send(&harness, "GET /photos/a", &[], "").await.refusal(), "404 NoSuchKey");

    let mut late = Signer::new(&harness);
    harness.clock.advance(Duration::from_secs(16 * 60));
    assert_eq!(late.send(&harness, "GET /photos/a", &[], "").await.refusal(), "403 RequestTimeTooSkewed");
}

#[tokio::test]
async fn an_address_is_good_for_what_it_was_signed_for_and_as_long() {
    let harness = start().await;
    let mut signer = Signer::new(&harness);
    let put = signer.presigned("PUT /photos/a", 600);
    assert_eq!(answer(&harness, request(&put, &[], "hello")).await.status, 200);
    let get = signer.presigned("GET /photos/a", 600);
    assert_eq!(answer(&harness, request(&get, &[], "")).await.body, "hello");
    let hashed = [("x-amz-content-sha256", "UNSIGNED-PAYLOAD")];
    assert_eq!(answer(&harness, request(&put, &hashed, "hello")).await.status, 200, "it says nothing");
    let agent = [("x-amz-user-agent", "x")];
    assert_eq!(answer(&harness, request(&put, &agent, "hello")).await.refusal(), "403 AccessDenied");
    let once = signer.presigned("PUT /photos/once?If-None-Match=%2A", 600);
    assert_eq!(answer(&harness, request(&once, &[], "first")).await.status, 200);
    let again = answer(&harness, request(&once, &[], "second")).await;
    assert_eq!(again.refusal(), "412 PreconditionFailed", "a condition may stand in an address");
    let of_nothing = "PUT /photos/later?x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32";
    let later = signer.presigned(of_nothing, 600);
    assert_eq!(answer(&harness, request(&later, &[], "hello")).await.status, 200, "nobody had seen the body");
    let code = |line: String| {
        let harness = &harness;
        async move { answer(harness, request(&line, &[], "")).await.refusal() }
    };
    assert_eq!(code(get.replace("/photos/a?", "/photos/b?")).await, "403 SignatureDoesNotMatch");
    assert_eq!(code(get.replace("GET ", "DELETE ")).await, "403 SignatureDoesNotMatch");
    assert_eq!(code(get.replace("Expires=600", "Expires=601")).await, "403 SignatureDoesNotMatch");
    assert_eq!(code(format!("{get}&versionId=null")).await, "403 SignatureDoesNotMatch");
    assert_eq!(code(get.replace(KEY, "AKIDOTHER")).await, "403 InvalidAccessKeyId");
    harness.clock.advance(Duration::from_secs(601));
    let expired = answer(&harness, request(&get, &[], "")).await;
    assert_eq!(
        (expired.refusal().as_str(), expired.one("Message").as_str()),
        ("403 AccessDenied", "Request has expired")
    );
}

/// Signs addresses in the older way: these headers, and the resource with what stands in its query.
fn older(harness: &Harness, secret: &str, line: &str, headers: &str, resource: &str, seconds: u64) -> String {
    let (method, uri) = line.split_once(' ').expect("a method and a path");
    let expires = harness.clock.now().as_millis() / 1000 + seconds;
    let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes()).expect("any length");
    mac.update(format!("{method}\n\n\n{expires}\n{headers}{resource}").as_bytes());
    let signature = BASE64_STANDARD.encode(mac.finalize().into_bytes());
    let signature: String = form_urlencoded::byte_serialize(signature.as_bytes()).collect();
    let more = if uri.contains('?') { '&' } else { '?' };
    format!("{method} {uri}{more}AWSAccessKeyId={KEY}&Signature={signature}&Expires={expires}")
}

#[tokio::test]
async fn an_address_may_be_signed_in_the_older_way() {
    let harness = start().await;
    let sign =
        |line: &str, headers: &str, resource: &str| older(&harness, SECRET, line, headers, resource, 600);
    let ask = async |line: &str, headers: &[(&str, &str)], body: &'static str| {
        answer(&harness, request(line, headers, body)).await
    };
    let put = "PUT /photos/a%20b?x-amz-meta-a=b%20c&x-amz-checksum-crc32=AAAAAA%3D%3D";
    let put = sign(put, "x-amz-checksum-crc32:AAAAAA==\nx-amz-meta-a:b c\n", "/photos/a%20b");
    assert_eq!(ask(&put, &[], "hello").await.status, 200);
    let get = sign("GET /photos/a%20b", "", "/photos/a%20b");
    let got = ask(&get, &[("range", "bytes=0-3")], "").await;
    assert_eq!((&got.body[..], got.header("x-amz-meta-a")), (&b"hell"[..], "b c"));
    let shown = "/photos/a%20b?response-content-disposition=a%3B%20b%2Bc&response-content-type=x%2Fy";
    let resource = "/photos/a%20b?response-content-disposition=a; b+c&response-content-type=x/y";
    let got = ask(&sign(&format!("GET {shown}"), "", resource), &[], "").await;
    assert_eq!((got.header("content-type"), got.header("content-disposition")), ("x/y", "a; b+c"));
    let by_host = [("host", "photos.localhost")];
    let form = [("content-type", "multipart/form-data; boundary=x")];
    assert_eq!(
        ask("POST /photos", &form, "--x--").await.refusal(),
        "501 NotImplemented",
        "not a word of signatures"
    );
    let virtual_host = sign("GET /a%20b", "", "/photos/a%20b");
    assert_eq!(ask(&virtual_host, &by_host, "").await.body, "hello");
    assert_eq!(
        ask(&virtual_host, &[("host", "photo.localhost")], "").await.refusal(),
        "403 SignatureDoesNotMatch"
    );
    for signed in ["/photos", "/photos/"] {
        assert_eq!(ask(&sign("GET /photos?prefix=a", "", signed), &[], "").await.status, 200, "{signed}");
    }
    let uploads = sign("POST /photos/large?uploads", "", "/photos/large?uploads");
    assert_eq!(ask(&uploads, &[("content-type", "")], "").await.status, 200);

    let code = async |line: String| ask(&line, &[], "").await.refusal();
    assert_eq!(code(get.replace("GET ", "DELETE ")).await, "403 SignatureDoesNotMatch");
    assert_eq!(code(get.replace("/a%20b", "/a%20c")).await, "403 SignatureDoesNotMatch");
    assert_eq!(code(get.replace("Expires=1", "Expires=2")).await, "403 SignatureDoesNotMatch");
    assert_eq!(code(get.replace("Signature=", "Signature=A")).await, "403 SignatureDoesNotMatch");
    for added in ["versionId=null", "acl", "partNumber=1", "response-expires=x", "x-amz-meta-b=c"] {
        assert_eq!(code(format!("{get}&{added}")).await, "403 SignatureDoesNotMatch", "{added}");
    }
    for (name, value) in
        [("x-amz-meta-b", "c"), ("content-type", "x/y"), ("content-md5", "eB5eJF1ptWaXm4bijSPyxw==")]
    {
        assert_eq!(
            ask(&put, &[(name, value)], "hello").await.refusal(),
            "403 SignatureDoesNotMatch",
            "{name}"
        );
    }
    let stranger = older(&harness, "other", "GET /photos/a%20b", "", "/photos/a%20b", 600);
    assert_eq!(code(stranger).await, "403 SignatureDoesNotMatch");
    assert_eq!(code(get.replace(KEY, "AKIDOTHER")).await, "403 InvalidAccessKeyId");
    assert_eq!(code(get.replace("Expires=", "Expires=x")).await, "403 AccessDenied");
    for name in ["AWSAccessKeyId", "Signature", "Expires"] {
        assert_eq!(code(get.replace(name, "x")).await, "403 AccessDenied", "{name} is missing");
    }
    let mut present = Signer::new(&harness);
    let both = present.presigned(&get, 600);
    assert_eq!(code(both).await, "400 InvalidArgument");
    harness.clock.advance(Duration::from_secs(601));
    let expired = ask(&get, &[], "").await;
    assert_eq!(
        (expired.refusal().as_str(), expired.one("Message").as_str()),
        ("403 AccessDenied", "Request has expired")
    );
}

#[tokio::test]
async fn without_keys_an_older_address_says_as_much_and_ends_as_soon() {
    let harness = Harness::start().await;
    let ask = async |line: &str, body: &'static str| answer(&harness, request(line, &[], body)).await;
    assert_eq!(ask("PUT /photos", "").await.status, 200);
    let put = older(&harness, "any", "PUT /photos/a?x-amz-meta-a=b", "", "", 600);
    assert_eq!(ask(&put, "hello").await.status, 200);
    let get = older(&harness, "any", "GET /photos/a", "", "", 600);
    assert_eq!(ask(&get, "").await.header("x-amz-meta-a"), "b", "what stands in the address counts");
    harness.clock.advance(Duration::from_secs(601));
    assert_eq!(ask(&get, "").await.refusal(), "403 AccessDenied");
}

#[tokio::test]
async fn what_is_signed_as_a_header_may_stand_in_the_address() {
    let harness = start().await;
    let mut signer = Signer::new(&harness);
    let query = format!(
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={KEY}%2F{}&X-Amz-Date={}&X-Amz-Expires=600\
         &X-Amz-SignedHeaders=host%3Bx-amz-meta-a&x-amz-meta-a=one%20two",
        signer.scope().replace('/', "%2F"),
        signer.date
    );
    let canonical = format!(
        "PUT\n/photos/a\n{query}\nhost:{}\nx-amz-meta-a:one two\n\nhost;x-amz-meta-a\nUNSIGNED-PAYLOAD",
        signer.host
    );
    let line = format!("PUT /photos/a?{query}&X-Amz-Signature={}", signer.sign_request(&canonical));
    let put = answer(&harness, request(&line, &[], "hello")).await;
    assert_eq!(put.status, 200, "{}", put.text());
    assert_eq!(signer.send(&harness, "HEAD /photos/a", &[], "").await.header("x-amz-meta-a"), "one two");
    let again = answer(&harness, request(&line, &[("x-amz-meta-a", "one two")], "hello")).await;
    assert_eq!(again.status, 200, "{}", again.text());
    let other = answer(&harness, request(&line, &[("x-amz-meta-a", "two")], "hello")).await;
    assert_eq!(other.refusal(), "403 SignatureDoesNotMatch");
    let changed = line.replace("one%20two", "two");
    assert_eq!(
        answer(&harness, request(&changed, &[], "hello")).await.refusal(),
        "403 SignatureDoesNotMatch"
    );
}

#[tokio::test]
async fn every_chunk_is_compared() {
    let harness = start().await;
    for trailers in [false, true] {
        let payload = match trailers {
            false => "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
            true => "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
        };
        // The CRC32 of "hello world" is 0d4a1185.
        let checksum = "x-amz-checksum-crc32:DUoRhQ==";
        let send = async |key: &str, change: Change| {
            let mut signer = Signer::new(&harness);
            let mut headers = vec![("x-amz-decoded-content-length", "11")];
            if trailers {
                headers.push(("x-amz-trailer", "x-amz-checksum-crc32"));
            }
            let mut request = signer.signed(&format!("PUT /photos/{key}"), &headers, b"", payload);
            let mut chunks: Vec<String> = ["hello ", "world", ""].map(|bytes| signer.chunk(bytes)).into();
            chunks.push(if trailers { signer.trailer(checksum) } else { "\r\n".to_owned() });
            change(&mut chunks);
            *request.body_mut() = Full::new(chunks.concat().into());
            answer(&harness, request).await
        };
        let good = send("good", |_| {}).await;
        assert_eq!(good.status, 200, "{}", good.text());
        let changes: [(&str, Change); 4] = [
            ("a byte", |chunks| chunks[1] = chunks[1].replace("world", "w0rld")),
            ("a signature", |chunks| chunks[0] = chunks[0].replace("signature=", "signature=0")),
            ("the order", |chunks| chunks.swap(0, 1)),
            ("a chunk left out", |chunks| drop(chunks.remove(1))),
        ];
        for (what, change) in changes {
            assert_eq!(send("bad", change).await.refusal(), "403 SignatureDoesNotMatch", "{what}");
        }
        // What is longer than it says goes no further, whatever its signature.
        let twice = send("bad", |chunks| chunks.insert(1, chunks[0].clone())).await;
        assert_eq!(twice.refusal(), "400 IncompleteBody");
        if trailers {
            let other = send("bad", |chunks| chunks[3] = chunks[3].replace("DUoRhQ", "AAAAAA")).await;
            assert_eq!(other.refusal(), "403 SignatureDoesNotMatch");
            let none =
                send("bad", |chunks| chunks[3] = "x-amz-checksum-crc32:DUoRhQ==\r\n\r\n".to_owned()).await;
            assert_eq!(none.refusal(), "403 SignatureDoesNotMatch");
        }
        let mut signer = Signer::new(&harness);
        assert_eq!(signer.send(&harness, "GET /photos/good", &[], "").await.body, "hello world");
        assert_eq!(signer.send(&harness, "GET /photos/bad", &[], "").await.refusal(), "404 NoSuchKey");
    }
}

#[tokio::test]
async fn the_other_services_are_behind_the_same_keys() {
    let harness = start().await;
    let target = "Kinesis_20131202.ListStreams";
    let (status, _, body) = harness.exchange(json_request(target, "{}")).await;
    let text = String::from_utf8_lossy(&body);
    assert!(status == 400 && text.contains("MissingAuthenticationTokenException"), "{status} {text}");
    let mut signer = Signer { service: "kinesis", ..Signer::new(&harness) };
    let headers = [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", target)];
    let answered = signer.send(&harness, "POST /", &headers, "{}").await;
    assert_eq!(answered.status, 200, "{}", answered.text());
    let mut stranger = Signer { secret: "other".into(), service: "kinesis", ..Signer::new(&harness) };
    let refused = stranger.send(&harness, "POST /", &headers, "{}").await;
    assert!(refused.text().contains("InvalidSignatureException"), "{}", refused.text());
}

#[tokio::test]
async fn by_http2_the_host_may_be_signed_under_its_other_name() {
    let harness = start().await;
    let get = |host_name: &'static str, change: fn(&mut Request<Full<bytes::Bytes>>)| {
        let mut signer = Signer { host_name, ..Signer::new(&harness) };
        let mut request = signer.signed("GET /photos", &[], b"", &hash(b""));
        change(&mut request);
        request
    };
    for name in ["host", ":authority"] {
        let (status, _, body) = whole(harness.send_http2(get(name, |_| {})).await).await;
        assert_eq!(status, 200, "{name}: {}", String::from_utf8_lossy(&body));
    }
    // A header `Host` would be the one that counts, and nobody has signed it.
    let named = |request: &mut Request<Full<bytes::Bytes>>| {
        request.headers_mut().insert("host", "photos.localhost".parse().unwrap());
    };
    let (status, _, body) = whole(harness.send_http2(get(":authority", named)).await).await;
    assert!(status == 403 && body.windows(12).any(|part| part == b"AccessDenied"), "{status}");
    assert_eq!(answer(&harness, get(":authority", |_| {})).await.refusal(), "403 AccessDenied");
}
