//! Damage that knows nothing of what the bytes mean.

use crate::Chance;

/// Bytes at which parsers stumble: ends of ranges, quotes, brackets, lengths of DER.
const TELLING: &[u8] = &[
    0, 1, 0x7f, 0x80, 0x81, 0x82, 0x84, 0xff, 0xfe, 0xc3, b'"', b'\\', b'{', b'}', b'[', b'-',
    b'\n',
];

pub fn damage(bytes: &mut Vec<u8>, chance: &mut Chance) {
    let at = chance.below(bytes.len() + 1);
    let length = chance.below(bytes.len() - at + 1);
    match chance.below(6) {
        0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        1 if at < bytes.len() => bytes[at] = *chance.pick(TELLING),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..at + length)),
        // Once more, or many times.
        4 => {
            let times = if chance.one_in(20) { 1 + chance.below(64) } else { 1 };
            let piece = bytes[at..at + length].repeat(times);
            bytes.splice(at..at, piece);
        }
        _ => {
            let count = chance.below(8);
            let noise: Vec<u8> = (0..count).map(|_| chance.byte()).collect();
            bytes.splice(at..at, noise);
        }
    }
}
