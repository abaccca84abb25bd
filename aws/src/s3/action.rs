//! Every call that blobs make.
//!
//! The service does not document how many calls a second may make, list and delete buckets; these are few enough.
//! Objects have no quota of the account: a bucket that is asked too much says `SlowDown`.

use crate::action::{Action, Resource, Service, actions};

const fn s3(name: &'static str, resource: Resource) -> Action {
    Action::new(Service::S3, name, resource)
}

actions! {
    CREATE_BUCKET = s3("CreateBucket", Resource::Bucket).control(10);
    DELETE_BUCKET = s3("DeleteBucket", Resource::Bucket).control(10);
    LIST_BUCKETS = s3("ListBuckets", Resource::Account).allowed_by("ListAllMyBuckets").control(50).repeatable();
    LIST_OBJECTS = s3("ListObjectsV2", Resource::Bucket).allowed_by("ListBucket").repeatable();
    HEAD_OBJECT = s3("HeadObject", Resource::Object).allowed_by("GetObject").repeatable();
    GET_OBJECT = s3("GetObject", Resource::Object).repeatable();
    // Only a put without a condition may be repeated: a second one would find the first in its way.
    PUT_OBJECT = s3("PutObject", Resource::Object);
    COPY_OBJECT = s3("CopyObject", Resource::Object).allowed_by("PutObject").moving();
    DELETE_OBJECT = s3("DeleteObject", Resource::Object);
    DELETE_OBJECTS = s3("DeleteObjects", Resource::Object).allowed_by("DeleteObject").repeatable();
    // A second upload would stay behind and be charged for.
    CREATE_UPLOAD = s3("CreateMultipartUpload", Resource::Object).allowed_by("PutObject");
    UPLOAD_PART = s3("UploadPart", Resource::Object).allowed_by("PutObject").repeatable();
    LIST_PARTS = s3("ListParts", Resource::Object).allowed_by("ListMultipartUploadParts").repeatable();
    LIST_UPLOADS =
        s3("ListMultipartUploads", Resource::Bucket).allowed_by("ListBucketMultipartUploads").repeatable();
    COMPLETE_UPLOAD = s3("CompleteMultipartUpload", Resource::Object).allowed_by("PutObject").moving();
    ABORT_UPLOAD = s3("AbortMultipartUpload", Resource::Object);
}
