//! What clients ask about buckets and objects that cannot be changed here: how it is, or that there is nothing.

use http::{Response, StatusCode};

use super::address::Target;
use super::answer::{document, owner};
use super::errors::{fault, with};
use super::rest::Rest;
use super::xml::Xml;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let bucket = rest.bucket()?;
    match &rest.target {
        Target::Object(bucket, key) => {
            context.ports.blobs.head(bucket, key).await.map(drop).map_err(fault)?
        }
        _ => context.ports.blobs.bucket(bucket).await.map(drop).map_err(fault)?,
    }
    let absent = |code: &'static str, message: &str| {
        let fault = Fault::client(code, message).with_status(StatusCode::NOT_FOUND);
        Err(with(fault, "BucketName", bucket.as_str()))
    };
    match rest.operation {
        "GetBucketAcl" | "GetObjectAcl" => Ok(document("AccessControlPolicy", access)),
        "GetBucketAccelerateConfiguration" => Ok(document("AccelerateConfiguration", |_| ())),
        "GetBucketLogging" => Ok(document("BucketLoggingStatus", |_| ())),
        "GetBucketNotificationConfiguration" => Ok(document("NotificationConfiguration", |_| ())),
        "GetBucketVersioning" => Ok(document("VersioningConfiguration", |_| ())),
        "GetBucketRequestPayment" => Ok(document("RequestPaymentConfiguration", |xml| {
            xml.value("Payer", "BucketOwner");
        })),
        "GetBucketOwnershipControls" => Ok(document("OwnershipControls", |xml| {
            xml.nested("Rule", "ObjectOwnership", "BucketOwnerEnforced");
        })),
        "GetObjectTagging" => Ok(document("Tagging", |xml| {
            xml.value("TagSet", "");
        })),
        "GetBucketCors" => absent("NoSuchCORSConfiguration", "The CORS configuration does not exist"),
        "GetBucketEncryption" => absent(
            "ServerSideEncryptionConfigurationNotFoundError",
            "The server side encryption configuration was not found",
        ),
        "GetBucketLifecycleConfiguration" => {
            absent("NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist")
        }
        "GetBucketPolicy" => absent("NoSuchBucketPolicy", "The bucket policy does not exist"),
        "GetBucketReplication" => {
            absent("ReplicationConfigurationNotFoundError", "The replication configuration was not found")
        }
        "GetBucketTagging" => absent("NoSuchTagSet", "The TagSet does not exist"),
        "GetBucketWebsite" => {
            absent("NoSuchWebsiteConfiguration", "The specified bucket does not have a website configuration")
        }
        "GetObjectLockConfiguration" => absent(
            "ObjectLockConfigurationNotFoundError",
            "Object Lock configuration does not exist for this bucket",
        ),
        "GetPublicAccessBlock" => absent(
            "NoSuchPublicAccessBlockConfiguration",
            "The public access block configuration was not found",
        ),
        other => Err(super::errors::not_implemented(other)),
    }
}

/// The owner may do everything, and nobody else is known.
fn access(xml: &mut Xml) {
    owner(xml, "Owner");
    xml.element("AccessControlList", |xml| {
        xml.element("Grant", |xml| {
            xml.raw("<Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\">");
            xml.value("ID", crate::context::ACCOUNT);
            xml.raw("</Grantee>");
            xml.value("Permission", "FULL_CONTROL");
        });
    });
}
