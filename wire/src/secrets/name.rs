//! What a secret is called: by its name, or by its ARN, whose last six characters tell it from an earlier one of the
//! same name.

use super::errors::{invalid, no_secret};
use crate::context::Context;
use crate::fault::Fault;

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 512;
/// Characters at the end of an ARN that no one chooses.
const SUFFIX_CHARS: usize = 6;
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Checks the name of a new secret.
pub(super) fn check(name: Option<String>) -> Result<String, Fault> {
    let name = name.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| invalid("You must provide a value for the Name parameter."))?;
    check_letters(&name)?;
    if name.len() > NAME_CHARS_MAX {
        return Err(invalid(format!("Invalid name. It must have at most {NAME_CHARS_MAX} characters.")));
    }
    Ok(name)
}

fn check_letters(name: &str) -> Result<(), Fault> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+=.@!-".contains(&byte);
    if name.bytes().all(allowed) {
        return Ok(());
    }
    Err(Fault::validation(
        "Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!",
    ))
}

/// What a caller means by a secret's identifier: names that it may have, the likeliest first, and the end of its ARN.
pub(super) fn candidates(id: &str) -> Result<Vec<(String, Option<String>)>, Fault> {
    if id.is_empty() || id.len() > 2_048 {
        return Err(invalid("Invalid SecretId: it must have 1 to 2048 characters."));
    }
    if !id.starts_with("arn:") {
        check_letters(id)?;
        return Ok(vec![(id.to_owned(), None)]);
    }
    let resource = id.splitn(7, ':').nth(6).filter(|_| id.split(':').nth(2) == Some("secretsmanager"));
    let resource = resource.filter(|resource| !resource.is_empty()).ok_or_else(no_secret)?;
    let mut found = Vec::new();
    if let Some((name, suffix)) = resource.rsplit_once('-').filter(|(_, suffix)| suffix.len() == SUFFIX_CHARS)
    {
        found.push((name.to_owned(), Some(suffix.to_owned())));
    }
    // An ARN without its end, as people put it together from the name.
    found.push((resource.to_owned(), None));
    Ok(found)
}

/// ARN and name of a secret that is not there, as far as its identifier tells them.
pub(super) fn of_missing(context: &Context, id: &str) -> Result<(String, String), Fault> {
    let (name, _) = candidates(id)?.into_iter().next().ok_or_else(no_secret)?;
    let arn = match id.starts_with("arn:") {
        true => id.to_owned(),
        false => context.arn("secretsmanager", &format!("secret:{name}")),
    };
    Ok((arn, name))
}

/// Letters and digits that nobody can foresee.
pub(super) fn suffix() -> Result<String, Fault> {
    let letter = |byte: u8| char::from(LETTERS[usize::from(byte) % LETTERS.len()]);
    Ok(random::<SUFFIX_CHARS>()?.into_iter().map(letter).collect())
}

/// The identifier of a version that its maker has given none.
pub(super) fn version_id() -> Result<String, Fault> {
    let digits = hex::encode(random::<16>()?);
    Ok([&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-"))
}

fn random<const N: usize>() -> Result<[u8; N], Fault> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Fault::server("InternalServiceError", error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_name_and_by_arn() {
        let arn = "arn:aws:secretsmanager:us-east-1:000000000000:secret:app/db-main-AbCdEf";
        let expected =
            [("app/db-main".to_owned(), Some("AbCdEf".to_owned())), ("app/db-main-AbCdEf".to_owned(), None)];
        assert_eq!(candidates(arn).unwrap(), expected);
        assert_eq!(candidates("app/db").unwrap(), [("app/db".to_owned(), None)]);
        assert_eq!(candidates("app db").unwrap_err().code, "ValidationException");
        for id in
            ["", "arn:aws:sqs:us-east-1:000000000000:secret:a", "arn:aws:secretsmanager:r:0:secret:", "arn:"]
        {
            assert!(candidates(id).is_err(), "{id}");
        }
    }

    #[test]
    fn names_have_few_characters() {
        assert_eq!(check(Some("a/b_c+=.@!-1".into())).unwrap(), "a/b_c+=.@!-1");
        for name in ["", "a b", "ä", "a:b", &"x".repeat(513)] {
            assert!(check(Some(name.to_owned())).is_err(), "{name}");
        }
        assert!(check(None).is_err());
        assert_eq!((suffix().unwrap().len(), version_id().unwrap().len()), (6, 36));
        assert_ne!(version_id().unwrap(), version_id().unwrap());
    }
}
