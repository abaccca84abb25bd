//! CloudWatch and STS over HTTP, in every language that clients speak.

mod harness;

use bytes::Bytes;
use harness::Harness;
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::json;

async fn send(server: &Harness, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (StatusCode, String) {
    let mut request = Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body))).expect("a request");
    let (status, _, body) = server.exchange(request).await;
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn figures_are_taken_in_every_language() {
    let server = Harness::start().await;
    let data = json!({"Namespace": "App", "MetricData": [{"MetricName": "m", "Value": 2.5}]});
    let target = ("x-amz-target", "GraniteServiceVersion20100801.PutMetricData");
    let json = [target, ("content-type", "application/x-amz-json-1.0")];
    let (status, body) = send(&server, "/", &json, data.to_string().as_bytes()).await;
    assert_eq!((status, &*body), (StatusCode::OK, "{}"));

    let path = "/service/GraniteServiceVersion20100801/operation/PutMetricData";
    let cbor = [("smithy-protocol", "rpc-v2-cbor"), ("content-type", "application/cbor")];
    let bytes = minicbor_serde::to_vec(&data).unwrap();
    let (status, _) = send(&server, path, &cbor, &bytes).await;
    assert_eq!(status, StatusCode::OK);

    let form = [("content-type", "application/x-www-form-urlencoded")];
    let fields = b"Action=PutMetricData&Version=2010-08-01&Namespace=App&MetricData.member.1.MetricName=m\
        &MetricData.member.1.Value=2.5&MetricData.member.1.Dimensions.member.1.Name=Host\
        &MetricData.member.1.Dimensions.member.1.Value=a";
    let (status, body) = send(&server, "/", &form, fields).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert!(body.starts_with("<PutMetricDataResponse"), "{body}");
}

#[tokio::test]
async fn figures_that_make_no_sense_are_refused() {
    let server = Harness::start().await;
    let json = [
        ("x-amz-target", "GraniteServiceVersion20100801.PutMetricData"),
        ("content-type", "application/x-amz-json-1.0"),
    ];
    let many: Vec<_> = (0..1_001).map(|_| json!({"MetricName": "m", "Value": 1})).collect();
    for (data, code) in [
        (json!({}), "MissingRequiredParameterException"),
        (json!({"Namespace": "App"}), "MissingRequiredParameterException"),
        (json!({"Namespace": "App", "MetricData": many}), "InvalidParameterValueException"),
        (
            json!({"Namespace": "App", "MetricData": [{"MetricName": "m", "Value": true}]}),
            "SerializationException",
        ),
    ] {
        let (status, body) = send(&server, "/", &json, data.to_string().as_bytes()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(body.contains(code), "{body}");
    }
    let gzip = [json[0], json[1], ("content-encoding", "gzip")];
    let (status, body) = send(&server, "/", &gzip, b"{}").await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    let brotli = [json[0], json[1], ("content-encoding", "br")];
    assert_eq!(send(&server, "/", &brotli, b"{}").await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let (_, body) = send(&server, "/", &form, b"Action=PutDashboard&Version=2010-08-01").await;
    assert!(body.contains("<Code>InvalidAction</Code>"), "{body}");
}

#[tokio::test]
async fn callers_learn_who_they_are() {
    let server = Harness::start().await;
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let (status, body) = send(&server, "/", &form, b"Action=GetCallerIdentity&Version=2011-06-15").await;
    assert_eq!(status, StatusCode::OK);
    assert!(
        body.contains("<GetCallerIdentityResult>") && body.contains("<Account>000000000000</Account>"),
        "{body}"
    );
    let (status, body) = send(&server, "/", &form, b"Action=AssumeRole&Version=2011-06-15").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.contains("<Code>InvalidAction</Code>"), "{body}");
}

#[tokio::test]
async fn as_many_figures_as_two_mebibytes_hold_are_taken_from_a_form() {
    let server = Harness::start().await;
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let mut fields = "Action=PutMetricData&Version=2010-08-01&Namespace=Many".to_owned();
    for datum in 1..=100 {
        let datum = format!("MetricData.member.{datum}");
        fields += &format!("&{datum}.MetricName=m&{datum}.Unit=Count");
        for value in 1..=150 {
            fields += &format!("&{datum}.Values.member.{value}={value}&{datum}.Counts.member.{value}=2");
        }
    }
    let (status, body) = send(&server, "/", &form, fields.as_bytes()).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    // What comes last counts as well.
    fields += "&MetricData.member.100.Values.member.151=1";
    let (status, body) = send(&server, "/", &form, fields.as_bytes()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    assert!(body.contains("<Code>InvalidParameterValue</Code>"), "{body}");
}

#[tokio::test]
async fn forms_without_a_signature_are_refused_in_their_own_words() {
    let keys = anabranch_wire::Keys::new([("AK".to_owned(), "secret".to_owned())]);
    let server = Harness::with_keys(keys).await;
    let form = ("content-type", "application/x-www-form-urlencoded");
    let scope = "20261115/us-east-1/sts/aws4_request";
    let unknown = format!("AWS4-HMAC-SHA256 Credential=NOBODY/{scope}, SignedHeaders=host, Signature=00");
    let malformed = "AWS4-HMAC-SHA256 Credential=AK";
    for fields in [
        "Action=GetCallerIdentity&Version=2011-06-15",
        "Action=ListQueues&Version=2012-11-05",
        "Action=PutMetricData&Version=2010-08-01",
    ] {
        let (status, body) = send(&server, "/", &[form], fields.as_bytes()).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{body}");
        assert!(body.contains("<Code>MissingAuthenticationToken</Code>"), "{body}");
        let headers = [form, ("authorization", malformed)];
        let (status, body) = send(&server, "/", &headers, fields.as_bytes()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(body.contains("<Code>IncompleteSignature</Code>"), "{body}");
    }
    let now =
        jiff::Timestamp::from_millisecond(anabranch_model::Clock::now(&server.clock).as_millis() as i64);
    let now = now.unwrap().strftime("%Y%m%dT%H%M%SZ").to_string();
    let unknown = unknown.replace("20261115", &now[..8]).replace("=host", "=host;x-amz-date");
    for (authorization, code) in [
        (unknown.clone(), "<Code>InvalidClientTokenId</Code>"),
        (unknown.replace("NOBODY", "AK"), "<Code>SignatureDoesNotMatch</Code>"),
    ] {
        let headers = [form, ("authorization", &*authorization), ("x-amz-date", &*now)];
        let (status, body) =
            send(&server, "/", &headers, b"Action=GetCallerIdentity&Version=2011-06-15").await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{body}");
        assert!(body.contains(code), "{body}");
    }
}
