//! Traffic as bytes, so that one process can tell the others. Small numbers and empty places take little room.
//!
//! ```text
//!   version: 1 │ shards: 2 │ of each: id: 1 + n │ first: 16 │ last: 16 │ active: 8
//!                            seconds: 2, of each records, bytes, throttles: 8 each
//!                            buckets in use: 2, of each number: 1, bytes, records: 4 each as floats
//!                            hitters: 2, of each key: 16, bytes, records and their errors: 4 each as floats
//! ```

use anabranch_model::{Error, HashKey, HashRange, Result, ShardId};
use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::sketch::{BUCKETS, HITTERS_MAX, Hitter, Load, Sketch};
use super::{RING_SECONDS, Second, ShardSnapshot};

const VERSION: u8 = 1;

/// The bytes of these shards.
pub fn encode(shards: &[ShardSnapshot]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(VERSION);
    bytes.put_u16(shards.len() as u16);
    for shard in shards {
        put_shard(&mut bytes, shard);
    }
    bytes.freeze()
}

/// The shards in these bytes.
pub fn decode(mut bytes: &[u8]) -> Result<Vec<ShardSnapshot>> {
    let corrupt = || Error::Corrupt("the traffic of another process cannot be read".to_owned());
    match read(&mut bytes) {
        Some(shards) if bytes.is_empty() => Ok(shards),
        _ => Err(corrupt()),
    }
}

fn put_shard(bytes: &mut BytesMut, shard: &ShardSnapshot) {
    let id = shard.shard.as_str().as_bytes();
    bytes.put_u8(id.len() as u8);
    bytes.put_slice(id);
    bytes.put_u128(shard.range.first().get());
    bytes.put_u128(shard.range.last().get());
    bytes.put_u64(shard.active);
    bytes.put_u16(shard.seconds.len() as u16);
    for second in &shard.seconds {
        bytes.put_u64(second.records);
        bytes.put_u64(second.bytes);
        bytes.put_u64(second.throttles);
    }
    let used = |(_, load): &(usize, &Load)| load.records > 0.01;
    let buckets: Vec<_> = shard.sketch.buckets().iter().enumerate().filter(used).collect();
    bytes.put_u16(buckets.len() as u16);
    for (number, load) in buckets {
        bytes.put_u8(number as u8);
        put_load(bytes, load);
    }
    bytes.put_u16(shard.sketch.hitters().len() as u16);
    for hitter in shard.sketch.hitters() {
        bytes.put_u128(hitter.key.get());
        put_load(bytes, &hitter.load);
        put_load(bytes, &hitter.error);
    }
}

fn put_load(bytes: &mut BytesMut, load: &Load) {
    bytes.put_f32(load.bytes as f32);
    bytes.put_f32(load.records as f32);
}

fn read(bytes: &mut &[u8]) -> Option<Vec<ShardSnapshot>> {
    if bytes.try_get_u8().ok()? != VERSION {
        return None;
    }
    (0..bytes.try_get_u16().ok()?).map(|_| read_shard(bytes)).collect()
}

fn read_shard(bytes: &mut &[u8]) -> Option<ShardSnapshot> {
    let length = usize::from(bytes.try_get_u8().ok()?);
    let (id, rest) = bytes.split_at_checked(length)?;
    let shard = ShardId::new(std::str::from_utf8(id).ok()?).ok()?;
    *bytes = rest;
    let (first, last) = (bytes.try_get_u128().ok()?, bytes.try_get_u128().ok()?);
    let range = HashRange::new(HashKey::new(first), HashKey::new(last)).ok()?;
    let active = bytes.try_get_u64().ok()?;
    let seconds = usize::from(bytes.try_get_u16().ok()?);
    if seconds > RING_SECONDS {
        return None;
    }
    let mut second = || {
        Some(Second {
            records: bytes.try_get_u64().ok()?,
            bytes: bytes.try_get_u64().ok()?,
            throttles: bytes.try_get_u64().ok()?,
        })
    };
    let seconds = (0..seconds).map(|_| second()).collect::<Option<Vec<_>>>()?;
    let mut buckets = vec![Load::default(); BUCKETS];
    for _ in 0..bytes.try_get_u16().ok()? {
        let number = usize::from(bytes.try_get_u8().ok()?);
        *buckets.get_mut(number)? = read_load(bytes)?;
    }
    let hitters = usize::from(bytes.try_get_u16().ok()?);
    if hitters > HITTERS_MAX {
        return None;
    }
    let mut hitter = || {
        let key = HashKey::new(bytes.try_get_u128().ok()?);
        range.contains(key).then_some(())?;
        Some(Hitter { key, load: read_load(bytes)?, error: read_load(bytes)? })
    };
    let hitters = (0..hitters).map(|_| hitter()).collect::<Option<Vec<_>>>()?;
    let sketch = Sketch::from_parts(range, buckets, hitters);
    Some(ShardSnapshot { shard, range, seconds, sketch, active })
}

fn read_load(bytes: &mut &[u8]) -> Option<Load> {
    let (size, count) = (bytes.try_get_f32().ok()?, bytes.try_get_f32().ok()?);
    let sound = |number: f32| number.is_finite() && number >= 0.0;
    (sound(size) && sound(count)).then_some(Load { bytes: size.into(), records: count.into() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn snapshot(number: u64) -> ShardSnapshot {
        let range = HashRange::even(3)[number as usize];
        let mut sketch = Sketch::new(range);
        for step in 0..40u32 {
            sketch.add(HashKey::new(range.first().get() + u128::from(step) * (1 << 119)), 64.0, 1.0);
        }
        let seconds = vec![Second { records: 3, bytes: 700, throttles: number }; 12];
        ShardSnapshot { shard: ShardId::numbered(number), range, seconds, sketch, active: number }
    }

    #[test]
    fn traffic_comes_back() {
        let shards = [snapshot(0), snapshot(2)];
        assert_eq!(decode(&encode(&shards)).unwrap(), shards);
        assert_eq!(decode(&encode(&[])).unwrap(), []);
    }

    proptest! {
        #[test]
        fn damaged_traffic_is_refused_or_read_but_never_trusted_blindly(at in 0usize..4000, change in 1u8.., cut: bool) {
            let mut bytes = encode(&[snapshot(1)]).to_vec();
            let at = at % bytes.len();
            if cut {
                bytes.truncate(at);
                prop_assert!(decode(&bytes).is_err());
            } else {
                bytes[at] ^= change;
                let _ = decode(&bytes);
            }
        }
    }
}
