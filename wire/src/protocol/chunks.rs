//! CBOR whose texts come in chunks: clients that write while they encode do not know how long a text gets. The reader of
//! requests wants texts in one piece, so they are joined for it.

use minicbor::data::Type;
use minicbor::decode::Error;
use minicbor::{Decoder, Encoder};

/// The same value with every text in one piece. None if there is no text in chunks.
pub(super) fn joined(bytes: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut decoder = Decoder::new(bytes);
    let (mut joined, mut found) = (Vec::with_capacity(bytes.len()), false);
    while decoder.position() < bytes.len() {
        let start = decoder.position();
        match decoder.datatype()? {
            Type::StringIndef => {
                let text = decoder.str_iter()?.collect::<Result<String, _>>()?;
                // Only a writer that can fail makes this fail, and a vector cannot.
                let _ = Encoder::new(&mut joined).str(&text);
                found = true;
                continue;
            }
            // What is inside follows as values of its own.
            Type::Array | Type::ArrayIndef => drop(decoder.array()?),
            Type::Map | Type::MapIndef => drop(decoder.map()?),
            Type::Tag => drop(decoder.tag()?),
            Type::Break => decoder.set_position(start + 1),
            _ => decoder.skip()?,
        }
        joined.extend_from_slice(&bytes[start..decoder.position()]);
    }
    Ok(found.then_some(joined))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_wherever_they_stand() {
        // {_ (_ "a", ""): [_ 1, (_ "b", "", "c"), h'7f'], "k": {"x": (_)}, "t": 1(7.0), "b": (_ h'01', h'02')}
        let parts: [&[u8]; 6] = [
            &[0xbf, 0x7f, 0x61, b'a', 0x60, 0xff],
            &[0x9f, 0x01, 0x7f, 0x61, b'b', 0x60, 0x61, b'c', 0xff, 0x41, 0x7f, 0xff],
            &[0x61, b'k', 0xa1, 0x61, b'x', 0x7f, 0xff],
            &[0x61, b't', 0xc1, 0xf9, 0x47, 0x00],
            &[0x61, b'b', 0x5f, 0x41, 1, 0x41, 2, 0xff],
            &[0xff],
        ];
        let expected: [&[u8]; 6] = [
            &[0xbf, 0x61, b'a'],
            &[0x9f, 0x01, 0x62, b'b', b'c', 0x41, 0x7f, 0xff],
            &[0x61, b'k', 0xa1, 0x61, b'x', 0x60],
            parts[3],
            parts[4],
            parts[5],
        ];
        assert_eq!(joined(&parts.concat()).unwrap(), Some(expected.concat()));
        assert_eq!(joined(&[0xa1, 0x61, b'a', 0x41, 0x7f]).unwrap(), None);
    }

    #[test]
    fn chunks_that_are_none_are_refused() {
        let bodies: [&[u8]; 6] = [
            &[0x7f],
            &[0x7f, 0x61],
            &[0x7f, 0x61, b'a'],
            &[0x7f, 0x01, 0xff],
            &[0x7f, 0x7f, 0xff, 0xff],
            &[0x7f, 0x61, 0xff, 0xff],
        ];
        for body in bodies {
            assert!(joined(body).is_err(), "{body:x?}");
        }
    }
}
