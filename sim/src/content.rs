//! The bytes of one file, in pages that are shared until they differ.
//!
//! A clone costs one reference count, whatever the length: thousands of crash images hold the pages they have
//! in common once. Pages that were never written are not there and read as zero, so a large allocation is free.
//!
//! Must hold outside of a crash image that is being put together: no byte behind the length is other than zero.

use std::sync::Arc;

/// Small enough that copying one for a torn sector is cheap, large enough that a file of some MiB has few.
const PAGE_BYTES: usize = 16 * 1024;

static ZERO_PAGE: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

type Page = Option<Arc<[u8]>>;

/// Bytes and a length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    length: u64,
    pages: Arc<Vec<Page>>,
}

impl Content {
    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    /// Fills `buffer` from `offset`. The caller has compared the range with the length.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) {
        let mut done = 0;
        while done < buffer.len() {
            let (page, start, count) = span(offset + done as u64, buffer.len() - done);
            let target = &mut buffer[done..done + count];
            match self.pages.get(page) {
                Some(Some(bytes)) => target.copy_from_slice(&bytes[start..start + count]),
                _ => target.fill(0),
            }
            done += count;
        }
    }

    /// Writes `data` at `offset` and lengthens the file if it ends before that.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        self.place(offset, data);
        self.grow(offset + data.len() as u64);
    }

    /// Writes `data` at `offset` and leaves the length alone: a crash may keep bytes and lose the length that
    /// shows them. [`Content::clip`] ends such a state.
    pub(crate) fn place(&mut self, offset: u64, data: &[u8]) {
        let pages = Arc::make_mut(&mut self.pages);
        let mut done = 0;
        while done < data.len() {
            let (page, start, count) = span(offset + done as u64, data.len() - done);
            if page >= pages.len() {
                pages.resize(page + 1, None);
            }
            let source = &data[done..done + count];
            if count == PAGE_BYTES && pages[page].as_mut().and_then(Arc::get_mut).is_none() {
                pages[page] = Some(Arc::from(source));
            } else {
                writable(&mut pages[page])[start..start + count].copy_from_slice(source);
            }
            done += count;
        }
    }

    /// Makes the file at least `length` bytes long.
    pub(crate) fn grow(&mut self, length: u64) {
        self.length = self.length.max(length);
    }

    /// Cuts or extends the file to `length`.
    pub(crate) fn set_len(&mut self, length: u64) {
        self.length = length;
        self.clip();
    }

    /// Drops what lies behind the length, so that a later growth shows zeros.
    pub(crate) fn clip(&mut self) {
        let (page, start, _) = span(self.length, 1);
        if page >= self.pages.len() {
            return;
        }
        let pages = Arc::make_mut(&mut self.pages);
        if start == 0 {
            pages.truncate(page);
            return;
        }
        pages.truncate(page + 1);
        let dirty = pages[page].as_ref().is_some_and(|bytes| bytes[start..] != ZERO_PAGE[start..]);
        if dirty {
            writable(&mut pages[page])[start..].fill(0);
        }
    }

    /// Turns over one bit. The caller has compared the offset with the length.
    pub(crate) fn flip_bit(&mut self, offset: u64, bit: u8) {
        let mut byte = [0];
        self.read(offset, &mut byte);
        self.place(offset, &[byte[0] ^ (1 << bit)]);
    }
}

/// The page of an offset, the offset inside it, and how many of `wanted` bytes it holds from there.
fn span(offset: u64, wanted: usize) -> (usize, usize, usize) {
    let page = (offset / PAGE_BYTES as u64) as usize;
    let start = (offset % PAGE_BYTES as u64) as usize;
    (page, start, wanted.min(PAGE_BYTES - start))
}

fn writable(page: &mut Page) -> &mut [u8] {
    Arc::make_mut(page.get_or_insert_with(|| Arc::from(&ZERO_PAGE[..])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn bytes(content: &Content) -> Vec<u8> {
        let mut buffer = vec![0xAA; content.len() as usize];
        content.read(0, &mut buffer);
        buffer
    }

    #[test]
    fn content_behaves_like_a_vector() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed);
            let (mut content, mut model) = (Content::default(), Vec::new());
            let mut copies = Vec::new();
            for _ in 0..40 {
                let offset = rng.below(3 * PAGE_BYTES as u64);
                if rng.chance(0.3) {
                    content.set_len(offset);
                    model.resize(offset as usize, 0);
                } else {
                    let data = vec![rng.next_u64() as u8; rng.below(2 * PAGE_BYTES as u64 + 10) as usize];
                    let end = offset as usize + data.len();
                    content.write(offset, &data);
                    model.resize(model.len().max(end), 0);
                    model[offset as usize..end].copy_from_slice(&data);
                }
                assert!(bytes(&content) == model, "seed {seed}");
                copies.push((content.clone(), model.clone()));
            }
            assert!(
                copies.iter().all(|(copy, expected)| bytes(copy) == *expected),
                "a copy changed, seed {seed}"
            );
        }
    }

    #[test]
    fn placed_bytes_show_only_once_the_length_covers_them() {
        let mut content = Content::default();
        content.place(10, b"hidden");
        assert_eq!(content.len(), 0);
        let mut shown = content.clone();
        shown.grow(16);
        assert_eq!(&bytes(&shown)[10..], b"hidden");
        content.clip();
        content.grow(16);
        assert_eq!(bytes(&content), [0; 16]);
    }
}
