//! Every call that blobs make.
//!
//! The service does not document how many calls a second may make, list and delete buckets; these are few enough.
//! Objects have no quota of the account: a bucket that is asked too much says `SlowDown`.

use crate::action::{Action, Resource, Service, Use, actions};

const fn s3(name: &'static str, need: Use, resource: Resource) -> Action {
    Action::new(Service::S3, name, need, resource)
}

actions! {
    CREATE_BUCKET = s3("CreateBucket", Use::Manage, Resource::Bucket).control(10);
    DELETE_BUCKET = s3("DeleteBucket", Use::Manage, Resource::Bucket).control(10);
    LIST_BUCKETS = s3("ListBuckets", Use::Look, Resource::Account).allowed_by("ListAllMyBuckets").control(50).repeatable();
    LIST_OBJECTS = s3("ListObjectsV2", Use::Look, Resource::Bucket).allowed_by("ListBucket").repeatable();
    HEAD_OBJECT = s3("HeadObject", Use::Read, Resource::Object).allowed_by("GetObject").repeatable();
    GET_OBJECT = s3("GetObject", Use::Read, Resource::Object).repeatable();
    // Only a put without a condition may be repeated: a second one would find the first in its way.
    PUT_OBJECT = s3("PutObject", Use::Write, Resource::Object);
    COPY_OBJECT = s3("CopyObject", Use::Write, Resource::Object).allowed_by("PutObject").needing_also(&["GetObject"]).moving();
    DELETE_OBJECT = s3("DeleteObject", Use::Write, Resource::Object);
    DELETE_OBJECTS = s3("DeleteObjects", Use::Write, Resource::Object).allowed_by("DeleteObject").repeatable();
    // A second upload would stay behind and be charged for.
    CREATE_UPLOAD = s3("CreateMultipartUpload", Use::Write, Resource::Object).allowed_by("PutObject");
    UPLOAD_PART = s3("UploadPart", Use::Write, Resource::Object).allowed_by("PutObject").repeatable();
    LIST_PARTS = s3("ListParts", Use::Write, Resource::Object).allowed_by("ListMultipartUploadParts").repeatable();
    // A bucket is removed with the uploads that nobody completed.
    LIST_UPLOADS =
        s3("ListMultipartUploads", Use::Write, Resource::Bucket).allowed_by("ListBucketMultipartUploads").needed_to(Use::Manage).repeatable();
    // Like a put: only without a condition may it be repeated. That an upload is gone then says that it was completed.
    COMPLETE_UPLOAD = s3("CompleteMultipartUpload", Use::Write, Resource::Object).allowed_by("PutObject").moving();
    ABORT_UPLOAD = s3("AbortMultipartUpload", Use::Write, Resource::Object).needed_to(Use::Manage).repeatable();
}
