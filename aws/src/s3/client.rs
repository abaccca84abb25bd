//! Sends requests: signs them, and reads what comes back.
//!
//! Failures come as errors of the SDK, so that they are sorted where those of all other services are.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anabranch_model::Timestamp;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::http::HttpConnector;
use aws_smithy_runtime_api::client::identity::Identity;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::{ConnectorError, SdkError};
use aws_smithy_runtime_api::http::{Headers, StatusCode};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;

use super::credentials::Signer;
use super::place::Place;
use super::refusal::Refusal;
use super::request::Request;
use super::xml::Element;
use crate::config::{self, Aws};

/// Most bytes of an answer that is read whole: a page of a thousand of the longest keys has less.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// How a request failed.
pub(super) type Failed = SdkError<Refusal, HttpResponse>;

/// Sends requests. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    place: Place,
    signer: Signer,
    connector: Connector,
}

/// An answer that was read whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) headers: Headers,
    pub(super) text: String,
    status: StatusCode,
}

impl Client {
    pub(super) fn new(aws: &Aws, place: Place) -> Self {
        let signer = Signer::new(aws.config.credentials_provider());
        Client(Arc::new(Shared { place, signer, connector: config::connector() }))
    }

    pub(super) fn place(&self) -> &Place {
        &self.0.place
    }

    /// The answer to a request, read whole.
    pub(super) async fn ask(&self, request: &Request, now: Timestamp) -> Result<Answer, Failed> {
        let mut response = self.open(request, now).await?;
        let text = match read(response.take_body()).await {
            Ok(text) => text,
            Err(error) => return Err(SdkError::response_error(error, response)),
        };
        Ok(Answer { headers: response.headers().clone(), text, status: response.status() })
    }

    /// The answer to a request that is answered with a document, which may be an error even under a status of success.
    pub(super) async fn ask_document(&self, request: &Request, now: Timestamp) -> Result<Element, Failed> {
        let answer = self.ask(request, now).await?;
        match Element::parse(&answer.text) {
            Ok(root) if root.name == "Error" => {
                let mut raw = answer.raw();
                let refusal = Refusal::read(raw.status().as_u16(), &answer.text, None);
                // Only the code says that the service failed inside.
                if let (true, Ok(status)) = (root.text("Code") == "InternalError", StatusCode::try_from(500))
                {
                    *raw.status_mut() = status;
                }
                Err(SdkError::service_error(refusal, raw))
            }
            Ok(root) => Ok(root),
            Err(error) => Err(SdkError::response_error(error, answer.raw())),
        }
    }

    /// The head of the answer to a request; its body is still to be read.
    pub(super) async fn open(&self, request: &Request, now: Timestamp) -> Result<HttpResponse, Failed> {
        let body = SdkBody::from(request.body.clone());
        self.send(request, SignableBody::Bytes(&request.body), body, now).await
    }

    /// The answer to a request whose body is on its way. It is not signed: it is not known yet.
    pub(super) async fn open_flowing(
        &self,
        request: &Request,
        body: SdkBody,
        now: Timestamp,
    ) -> Result<HttpResponse, Failed> {
        self.send(request, SignableBody::UnsignedPayload, body, now).await
    }

    async fn send(
        &self,
        request: &Request,
        signable: SignableBody<'_>,
        body: SdkBody,
        now: Timestamp,
    ) -> Result<HttpResponse, Failed> {
        let signed = self.signed(request, signable, body, now).await?;
        let answered = self.0.connector.call(signed).await;
        let mut response = answered.map_err(SdkError::dispatch_failure)?;
        if response.status().is_success() {
            return Ok(response);
        }
        let text = match read(response.take_body()).await {
            Ok(text) => text,
            Err(error) => return Err(SdkError::response_error(error, response)),
        };
        let region = response.headers().get("x-amz-bucket-region");
        let refusal = Refusal::read(response.status().as_u16(), &text, region);
        Err(SdkError::service_error(refusal, response))
    }

    async fn signed(
        &self,
        request: &Request,
        signable: SignableBody<'_>,
        body: SdkBody,
        now: Timestamp,
    ) -> Result<HttpRequest, Failed> {
        let Shared { place, signer, .. } = &*self.0;
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(now.as_millis());
        let credentials = signer.credentials(time).await.map_err(|error| {
            SdkError::dispatch_failure(ConnectorError::other(BoxError::from(error), None))
        })?;
        let identity = Identity::from(credentials);
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(place.region())
            .name("s3")
            .time(time)
            .settings(settings)
            .build()
            .map_err(SdkError::construction_failure)?;
        let uri = request.uri(place);
        let headers = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let signable = SignableRequest::new(request.method, uri.as_str(), headers, signable)
            .map_err(SdkError::construction_failure)?;
        let (instructions, _) =
            sign(signable, &params.into()).map_err(SdkError::construction_failure)?.into_parts();
        let mut signed = HttpRequest::new(body);
        signed.set_method(request.method).map_err(SdkError::construction_failure)?;
        signed.set_uri(uri).map_err(SdkError::construction_failure)?;
        let given = request.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        let added = instructions.headers().map(|(name, value)| (name.to_string(), value.to_string()));
        for (name, value) in given.chain(added) {
            signed.headers_mut().try_insert(name, value).map_err(SdkError::construction_failure)?;
        }
        Ok(signed)
    }
}

impl Answer {
    /// The answer as errors carry it.
    fn raw(&self) -> HttpResponse {
        let mut raw = HttpResponse::new(self.status, SdkBody::empty());
        *raw.headers_mut() = self.headers.clone();
        raw
    }
}

/// A whole body as text. Text that is not UTF-8 is none of the service's, and is told by what is in its place.
async fn read(body: SdkBody) -> Result<String, BoxError> {
    let (mut stream, mut bytes) = (ByteStream::new(body), Vec::new());
    while let Some(piece) = stream.try_next().await? {
        if bytes.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err(format!("the answer has more than {ANSWER_BYTES_MAX} bytes").into());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
