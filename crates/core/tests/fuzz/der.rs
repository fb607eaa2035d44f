//! Damage to DER that leaves it DER, mostly: other tags, pieces twice or elsewhere or wrapped, lengths
//! that are written in another way or lie.

use x509_parser::pem::parse_x509_pem;

use crate::{Chance, bytes, samples};

/// One value: its tag and what is inside.
#[derive(Clone)]
struct Piece {
    tag: u8,
    inside: Inside,
}

#[derive(Clone)]
enum Inside {
    Bytes(Vec<u8>),
    Pieces(Vec<Piece>),
}

pub fn damaged_pem(pem: &str, chance: &mut Chance) -> Vec<u8> {
    let (_, block) = parse_x509_pem(pem.as_bytes()).expect("the samples are right");
    let der = damaged(&block.contents, chance);
    let mut pem = samples::pem(&der).into_bytes();
    if chance.one_in(8) {
        bytes::damage(&mut pem, chance);
    }
    pem
}

pub fn damaged(der: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut pieces = read(der).expect("the samples are right");
    for _ in 0..chance.below(4) {
        change(&mut pieces, chance);
    }
    let mut der = write(&pieces, chance);
    if chance.one_in(4) {
        bytes::damage(&mut der, chance);
    }
    der
}

/// Reads what is made of pieces all through; anything else is bytes.
fn read(mut der: &[u8]) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    while let [tag, length, rest @ ..] = der {
        let (length, rest) = match *length {
            short @ 0..=0x7f => (usize::from(short), rest),
            0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
            0x82 => {
                (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), rest.get(2..)?)
            }
            _ => return None,
        };
        let content = rest.get(..length)?;
        let is_constructed = tag & 0x20 != 0;
        // The value of an extension is DER too, inside of bytes.
        let inner = if is_constructed || *tag == 0x04 { read(content) } else { None };
        let inside = inner.map_or_else(|| Inside::Bytes(content.to_vec()), Inside::Pieces);
        pieces.push(Piece { tag: *tag, inside });
        der = rest.get(length..)?;
    }
    der.is_empty().then_some(pieces)
}

fn change(pieces: &mut Vec<Piece>, chance: &mut Chance) {
    if pieces.is_empty() {
        return;
    }
    let at = chance.below(pieces.len());
    // Deeper, five times of six.
    if !chance.one_in(6)
        && let Inside::Pieces(inner) = &mut pieces[at].inside
        && !inner.is_empty()
    {
        return change(inner, chance);
    }
    match chance.below(7) {
        0 => pieces[at].tag = chance.byte(),
        1 => drop(pieces.remove(at)),
        2 => pieces.insert(at, pieces[at].clone()),
        3 => {
            let other = chance.below(pieces.len());
            pieces.swap(at, other);
        }
        4 => {
            let depth = if chance.one_in(10) { 500 } else { 1 + chance.below(3) };
            for _ in 0..depth {
                let piece = pieces.remove(at);
                pieces.insert(at, Piece { tag: 0x30, inside: Inside::Pieces(vec![piece]) });
            }
        }
        5 => {
            let words: [&[u8]; 6] =
                [b"", b"system:masters", b"system:node:other", b"*", b"\x00", b"a.b\x00.c"];
            pieces[at].inside = Inside::Bytes((*chance.pick(&words)).to_vec());
        }
        _ => {
            if let Inside::Bytes(content) = &mut pieces[at].inside {
                bytes::damage(content, chance);
            }
        }
    }
}

fn write(pieces: &[Piece], chance: &mut Chance) -> Vec<u8> {
    let mut der = Vec::new();
    for piece in pieces {
        let content = match &piece.inside {
            Inside::Bytes(content) => content.clone(),
            Inside::Pieces(inner) => write(inner, chance),
        };
        der.push(piece.tag);
        write_length(&mut der, content.len(), chance);
        der.extend(content);
    }
    der
}

fn write_length(der: &mut Vec<u8>, length: usize, chance: &mut Chance) {
    let long = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    match chance.below(400) {
        // A lie by one, without an end, and in more bytes than needed.
        0 => der.push(u8::try_from(length + 1).unwrap_or(0x7f)),
        1 => der.push(0x80),
        2 => {
            der.push(0x84);
            der.extend(long);
        }
        3 => der.extend([0x84, 0xff, 0xff, 0xff, 0xff]),
        _ => match length {
            0..0x80 => der.push(long[3]),
            0x80..0x100 => der.extend([0x81, long[3]]),
            0x100..0x1_0000 => der.extend([0x82, long[2], long[3]]),
            _ => {
                der.push(0x84);
                der.extend(long);
            }
        },
    }
}
