//! A number of a table: a decimal of up to 38 significant digits, exact in everything it does.
//!
//! What must hold: each value has one representation and one text; the order of the numbers is the order of their
//! encodings as bytes; an operation gives the exact result or an error, never a rounded one.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::limits::{NUMBER_DIGITS_MAX, NUMBER_EXPONENT_MAX, NUMBER_EXPONENT_MIN};
use crate::name::excerpt;

/// First byte of an encoded number below zero; everything behind it is complemented.
const NEGATIVE: u8 = 1;
/// The whole of an encoded zero.
const ZERO: u8 = 2;
/// First byte of an encoded number above zero.
const POSITIVE: u8 = 3;
/// Ends the digits of an encoded number. Pairs of digits are stored one larger, so that a shorter number sorts first.
const END: u8 = 0;

/// Digits of the widest sum whose digits may still fit: one more for a carry, one less after a borrow.
const SUM_DIGITS_MAX: usize = NUMBER_DIGITS_MAX + 2;

/// A decimal: zero, or 1E-130 to 9.99E+125 of either sign, with at most 38 significant digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number {
    negative: bool,
    /// Without zeros at its end; below 10^38.
    coefficient: u128,
    /// The power of ten that the coefficient is multiplied by; zero for zero.
    scale: i16,
}

/// Why a text or a sum is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotANumber {
    /// It has characters that numbers do not have, or no digits.
    Malformed,
    /// The same of its exponent.
    Exponent,
    /// It has so many significant digits, which do not fit.
    Digits(usize),
    /// It is too far from zero.
    TooLarge,
    /// It is too close to zero.
    TooSmall,
}

impl fmt::Display for NotANumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotANumber::Malformed => {
                f.write_str("it must be digits with an optional sign, point and exponent")
            }
            NotANumber::Exponent => f.write_str("its exponent must be digits with an optional sign"),
            NotANumber::Digits(digits) => {
                write!(f, "it has {digits} significant digits, and at most {NUMBER_DIGITS_MAX} fit")
            }
            NotANumber::TooLarge => write!(f, "its magnitude is 1E+{} or more", NUMBER_EXPONENT_MAX + 1),
            NotANumber::TooSmall => write!(f, "its magnitude is below 1E{NUMBER_EXPONENT_MIN}"),
        }
    }
}

impl Number {
    /// Nothing.
    pub const ZERO: Number = Number { negative: false, coefficient: 0, scale: 0 };

    /// Whether this is zero.
    pub fn is_zero(&self) -> bool {
        self.coefficient == 0
    }

    /// Whether this is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// How many digits are significant; none for zero.
    pub fn digits(&self) -> usize {
        self.coefficient.checked_ilog10().map_or(0, |log| log as usize + 1)
    }

    /// The value, if it is whole and fits.
    pub fn as_i128(&self) -> Option<i128> {
        let power = 10u128.checked_pow(u32::try_from(self.scale).ok()?)?;
        let magnitude = i128::try_from(self.coefficient.checked_mul(power)?).ok()?;
        Some(if self.negative { -magnitude } else { magnitude })
    }

    /// The value without its fraction, if it fits.
    pub fn truncated(&self) -> Option<i128> {
        let Ok(digits) = u32::try_from(-self.scale) else { return self.as_i128() };
        // A power that does not fit is larger than any coefficient.
        let magnitude = 10u128.checked_pow(digits).map_or(0, |power| self.coefficient / power);
        let magnitude = i128::try_from(magnitude).ok()?;
        Some(if self.negative { -magnitude } else { magnitude })
    }

    /// The exact sum.
    pub fn plus(self, other: Number) -> Result<Number> {
        self.sum(other).ok_or_else(|| {
            let limit = NUMBER_DIGITS_MAX;
            Error::Invalid(format!(
                "{self} and {other} have no exact sum of {limit} digits within the range of numbers"
            ))
        })
    }

    /// The exact difference.
    pub fn minus(self, other: Number) -> Result<Number> {
        self.plus(other.negated())
    }

    /// This number with the other sign.
    pub fn negated(self) -> Number {
        Number { negative: !self.negative && !self.is_zero(), ..self }
    }

    /// The power of ten of the first digit.
    fn exponent(&self) -> i32 {
        i32::from(self.scale) + self.digits() as i32 - 1
    }

    /// The number that a text spells, or why it spells none.
    pub fn parse(text: &str) -> std::result::Result<Number, NotANumber> {
        parse(text)
    }

    /// The number with these parts, or why there is none.
    fn new(negative: bool, mut coefficient: u128, mut scale: i32) -> std::result::Result<Number, NotANumber> {
        if coefficient == 0 {
            return Ok(Number::ZERO);
        }
        while coefficient.is_multiple_of(10) {
            coefficient /= 10;
            scale += 1;
        }
        let digits = coefficient.ilog10() as usize + 1;
        let exponent = scale + digits as i32 - 1;
        if digits > NUMBER_DIGITS_MAX {
            return Err(NotANumber::Digits(digits));
        }
        if exponent > NUMBER_EXPONENT_MAX {
            return Err(NotANumber::TooLarge);
        }
        if exponent < NUMBER_EXPONENT_MIN {
            return Err(NotANumber::TooSmall);
        }
        Ok(Number { negative, coefficient, scale: scale as i16 })
    }

    fn sum(self, other: Number) -> Option<Number> {
        if self.is_zero() || other.is_zero() {
            return Some(if self.is_zero() { other } else { self });
        }
        let lowest = self.scale.min(other.scale);
        let width = self.exponent().max(other.exponent()) - i32::from(lowest) + 1;
        // The last digit of the finer number stays, and the first digit of the larger one moves by one place at most.
        if width as usize > NUMBER_DIGITS_MAX + 1 {
            return None;
        }
        let mut places = [0i8; SUM_DIGITS_MAX];
        for number in [self, other] {
            let (mut rest, mut place) = (number.coefficient, (number.scale - lowest) as usize);
            while rest > 0 {
                let digit = (rest % 10) as i8;
                places[place] += if number.negative { -digit } else { digit };
                rest /= 10;
                place += 1;
            }
        }
        Self::from_places(places, i32::from(lowest))
    }

    /// The number whose digits, which may be below zero or above nine, begin with the lowest at `scale`.
    fn from_places(mut places: [i8; SUM_DIGITS_MAX], scale: i32) -> Option<Number> {
        let negative = places.iter().rev().find(|place| **place != 0).is_some_and(|place| *place < 0);
        let mut carry = 0;
        for place in &mut places {
            let value = if negative { -*place } else { *place } + carry;
            *place = value.rem_euclid(10);
            carry = value.div_euclid(10);
        }
        let first = places.iter().position(|place| *place != 0).unwrap_or(0);
        let last = places.iter().rposition(|place| *place != 0).unwrap_or(0);
        if last - first >= NUMBER_DIGITS_MAX {
            return None;
        }
        let coefficient = places[first..=last].iter().rev().fold(0u128, |sum, d| sum * 10 + *d as u128);
        Number::new(negative, coefficient, scale + first as i32).ok()
    }
}

/// The encoding as bytes.
impl Number {
    /// Appends bytes that sort as numbers do and that say where they end, so that anything may follow.
    pub fn encode(&self, into: &mut Vec<u8>) {
        if self.is_zero() {
            return into.push(ZERO);
        }
        into.push(if self.negative { NEGATIVE } else { POSITIVE });
        let start = into.len();
        into.push((self.exponent() - NUMBER_EXPONENT_MIN) as u8);
        let digits = self.digits();
        let even = if digits.is_multiple_of(2) { self.coefficient } else { self.coefficient * 10 };
        for pair in (0..digits.div_ceil(2) as u32).rev() {
            into.push((even / 100u128.pow(pair) % 100) as u8 + 1);
        }
        into.push(END);
        if self.negative {
            into[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// Reads an encoded number from the start of `from`, and moves `from` behind it.
    pub fn decode(from: &mut &[u8]) -> Result<Number> {
        let damaged = || Error::Corrupt("an encoded number is damaged".to_string());
        let (class, rest) = from.split_first().ok_or_else(damaged)?;
        let flip = match *class {
            ZERO => {
                *from = rest;
                return Ok(Number::ZERO);
            }
            NEGATIVE => 0xff,
            POSITIVE => 0,
            _ => return Err(damaged()),
        };
        let (exponent, rest) = rest.split_first().ok_or_else(damaged)?;
        let length = rest.iter().position(|byte| byte ^ flip == END).ok_or_else(damaged)?;
        let pair = |byte: &u8| (byte ^ flip) - 1;
        let (Some(first), Some((last, before))) = (rest.first(), rest[..length].split_last()) else {
            return Err(damaged());
        };
        let well_formed =
            length <= NUMBER_DIGITS_MAX / 2 && rest[..length].iter().all(|byte| pair(byte) < 100);
        // The first pair begins with a digit that counts, and the last has one.
        if !well_formed || pair(first) < 10 || pair(last) == 0 {
            return Err(damaged());
        }
        let coefficient = before.iter().fold(0u128, |sum, byte| sum * 100 + u128::from(pair(byte)));
        let (coefficient, digits) = match pair(last) {
            last if last % 10 == 0 => (coefficient * 10 + u128::from(last / 10), 2 * length - 1),
            last => (coefficient * 100 + u128::from(last), 2 * length),
        };
        // Every exponent that a byte can say is in the range of numbers.
        let exponent = i16::from(exponent ^ flip) + NUMBER_EXPONENT_MIN as i16;
        *from = &rest[length + 1..];
        Ok(Number { negative: *class == NEGATIVE, coefficient, scale: exponent + 1 - digits as i16 })
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Number| if number.is_zero() { 0 } else { 1 - 2 * i8::from(number.negative) };
        let magnitude = |one: &Number, two: &Number| {
            // Coefficients brought to 38 digits compare like the fractions that they stand for.
            let widened = |n: &Number| n.coefficient * 10u128.pow((NUMBER_DIGITS_MAX - n.digits()) as u32);
            one.exponent().cmp(&two.exponent()).then_with(|| widened(one).cmp(&widened(two)))
        };
        sign(self).cmp(&sign(other)).then_with(|| match self.negative {
            _ if self.is_zero() => Ordering::Equal,
            false => magnitude(self, other),
            true => magnitude(other, self),
        })
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for Number {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |why: NotANumber| {
            let shown = excerpt(text);
            Error::Invalid(format!("number {shown} is not allowed: {why}"))
        };
        parse(text).map_err(refuse)
    }
}

fn parse(text: &str) -> std::result::Result<Number, NotANumber> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().next().is_none() || !digits().all(|byte| byte.is_ascii_digit()) {
        return Err(NotANumber::Malformed);
    }
    let leading = digits().take_while(|byte| *byte == b'0').count();
    let trailing = digits().rev().take_while(|byte| *byte == b'0').count();
    let significant = (whole.len() + fraction.len()).saturating_sub(leading + trailing);
    if significant == 0 {
        return Ok(Number::ZERO);
    }
    if significant > NUMBER_DIGITS_MAX {
        return Err(NotANumber::Digits(significant));
    }
    let coefficient =
        digits().skip(leading).take(significant).fold(0, |sum, d| sum * 10 + u128::from(d - b'0'));
    let scale = trailing as i64 - fraction.len() as i64 + i64::from(exponent);
    // Far outside the range every scale is as wrong as the next, and this one does not overflow.
    Number::new(negative, coefficient, scale.clamp(-1_000_000, 1_000_000) as i32)
}

fn parse_exponent(text: &str) -> std::result::Result<i32, NotANumber> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotANumber::Exponent);
    }
    let far = if text.starts_with('-') { i32::MIN } else { i32::MAX };
    Ok(text.parse().unwrap_or(far))
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.coefficient.to_string();
        let scale = i32::from(self.scale);
        let text = if scale >= 0 {
            digits + &"0".repeat(scale as usize)
        } else {
            let behind = scale.unsigned_abs() as usize;
            match digits.len().checked_sub(behind) {
                Some(before) if before > 0 => format!("{}.{}", &digits[..before], &digits[before..]),
                _ => format!("0.{}{digits}", "0".repeat(behind - digits.len())),
            }
        };
        f.pad_integral(!self.negative, "", &text)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whole numbers of up to 64 bits always fit.
macro_rules! from_whole {
    ($($whole:ty),+) => {
        $(impl From<$whole> for Number {
            fn from(value: $whole) -> Self {
                let wide = i128::from(value);
                Number::new(wide < 0, wide.unsigned_abs(), 0).unwrap_or(Number::ZERO)
            }
        })+
    };
}

from_whole!(i32, u32, i64, u64);
