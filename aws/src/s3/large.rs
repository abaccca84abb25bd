//! Putting a blob of which nobody knows how long it is: in parts, a few at a time.

use std::collections::BTreeSet;
use std::pin::pin;

use anabranch_model::blob::{
    BlobMeta, BodyDigester, BodyOptions, Checksum, ChecksumAlgorithm, ChecksumScope, Checksums,
    CompleteOptions, Part, PartNumber, PutOptions, Upload, UploadOptions,
};
use anabranch_model::{BlobKey, BucketName, Error, Result};
use bytes::Bytes;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

use super::Blobs;
use super::intake::{Flow, WHOLE_BYTES_MAX};
use super::unfinished::Unfinished;

/// Bytes of a part: 640 of them make the largest body.
const PART_BYTES: usize = WHOLE_BYTES_MAX;
/// Parts of one body that are under way at the same time.
const PARTS_AT_ONCE: usize = 4;

impl Blobs {
    pub(super) async fn put_large(
        &self,
        (bucket, key): (&BucketName, &BlobKey),
        flow: Flow,
        options: &PutOptions,
    ) -> Result<BlobMeta> {
        let (own, further) = checksums_ahead(&options.body)?;
        let checksum = own.map(|algorithm| (algorithm, ChecksumScope::Body));
        let begun = UploadOptions { properties: options.properties.clone(), checksum };
        let (unfinished, upload) = Unfinished::begin(self, (bucket, key), begun, further).await?;
        match self.fill(&upload, flow, own, options).await {
            Ok(meta) => {
                unfinished.finished();
                Ok(meta)
            }
            Err(error) => {
                unfinished.abort().await;
                Err(error)
            }
        }
    }

    /// Puts the parts, compares the whole with what was declared, and completes.
    async fn fill(
        &self,
        upload: &Upload,
        mut flow: Flow,
        own: Option<ChecksumAlgorithm>,
        options: &PutOptions,
    ) -> Result<BlobMeta> {
        let (mut under_way, mut parts) = (FuturesUnordered::new(), Vec::new());
        for number in 1.. {
            let bytes = next_chunk(&mut flow, &mut under_way, &mut parts).await?;
            if bytes.is_empty() {
                break;
            }
            under_way.push(self.put_chunk(upload, PartNumber::new(number)?, bytes, own).boxed());
            if under_way.len() == PARTS_AT_ONCE
                && let Some(part) = under_way.next().await
            {
                parts.push(part?);
            }
        }
        while let Some(part) = under_way.next().await {
            parts.push(part?);
        }
        drop(under_way);
        let digest = flow.finish()?;
        parts.sort_by_key(|part: &Part| part.number);
        let mut expected = Checksums::default();
        let of_whole = own.and_then(|algorithm| digest.checksums.get(algorithm));
        of_whole.into_iter().for_each(|checksum| expected.insert(checksum));
        let checksum = own.map(|algorithm| (algorithm, ChecksumScope::Body));
        let complete =
            CompleteOptions { condition: options.condition.clone(), size: Some(digest.size), expected };
        self.complete_parts(upload, &parts, checksum, &complete).await
    }

    async fn put_chunk(
        &self,
        upload: &Upload,
        number: PartNumber,
        bytes: Bytes,
        own: Option<ChecksumAlgorithm>,
    ) -> Result<Part> {
        let options =
            BodyOptions { computed: own.into_iter().collect(), md5_tag: true, ..BodyOptions::default() };
        let mut digester = BodyDigester::new(options)?;
        digester.update(&bytes)?;
        self.send_part(upload, number, bytes, digester.finish()?, own).await
    }
}

/// The bytes of the next part. Parts before it go on meanwhile: a body may take its time.
async fn next_chunk(
    flow: &mut Flow,
    under_way: &mut FuturesUnordered<BoxFuture<'_, Result<Part>>>,
    parts: &mut Vec<Part>,
) -> Result<Bytes> {
    let mut chunk = pin!(flow.next_chunk(PART_BYTES));
    while !under_way.is_empty() {
        match select(chunk.as_mut(), under_way.next()).await {
            Either::Left((chunk, _)) => return chunk,
            Either::Right((part, _)) => parts.extend(part.transpose()?),
        }
    }
    chunk.await
}

/// The algorithm whose checksum S3 makes of those of the parts, and the checksums that are known before the body is.
fn checksums_ahead(body: &BodyOptions) -> Result<(Option<ChecksumAlgorithm>, Vec<Checksum>)> {
    let unknown: BTreeSet<_> =
        body.computed.iter().copied().filter(|algorithm| body.expected.get(*algorithm).is_none()).collect();
    let of_whole = |algorithm: &ChecksumAlgorithm| algorithm.allows(ChecksumScope::Body);
    let own = unknown.iter().copied().find(of_whole);
    if let Some(refused) = unknown.iter().find(|algorithm| Some(**algorithm) != own) {
        return Err(Error::Invalid(format!(
            "the {} of a body of more than {WHOLE_BYTES_MAX} bytes cannot be stored on S3 unless it is given before: give \
             it, or put the body in parts",
            refused.name()
        )));
    }
    let expected: Vec<_> = body.expected.iter().collect();
    let own = own.or_else(|| expected.iter().map(Checksum::algorithm).find(of_whole));
    let further = expected.into_iter().filter(|checksum| Some(checksum.algorithm()) != own).collect();
    Ok((own, further))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_ahead_must_be_made_of_parts() {
        let body = |computed: &[ChecksumAlgorithm]| BodyOptions {
            computed: computed.iter().copied().collect(),
            ..BodyOptions::default()
        };
        let own = |computed| checksums_ahead(&body(computed)).map(|(own, _)| own);
        assert_eq!(own(&[]), Ok(None));
        assert_eq!(own(&[ChecksumAlgorithm::Crc32c]), Ok(Some(ChecksumAlgorithm::Crc32c)));
        assert!(own(&[ChecksumAlgorithm::Sha256]).is_err());
        assert!(own(&[ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc64Nvme]).is_err());
        let given = Checksum::new(ChecksumAlgorithm::Sha256, &[7; 32]).unwrap();
        let both = BodyOptions {
            expected: [given].into_iter().collect(),
            ..body(&[ChecksumAlgorithm::Sha256, ChecksumAlgorithm::Crc32])
        };
        assert_eq!(checksums_ahead(&both), Ok((Some(ChecksumAlgorithm::Crc32), vec![given])));
    }
}
