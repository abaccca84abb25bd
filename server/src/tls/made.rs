//! The certificate that a server makes for itself, in `tls/` below its data directory.
//!
//! ```text
//!   root.pem         what clients trust; its key is thrown away as soon as it has signed
//!   certificate.pem  the certificate of the server
//!   key.pem          its key, which only the owner of the directory can read
//!   names            what it is valid for; written last, so whoever finds it finds the others whole
//! ```
//!
//! It is made once and kept, so that clients go on trusting it; again only when it would not be valid any more.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anabranch_model::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use crate::failure::Failure;

/// Years for which a certificate is valid.
const YEARS: i32 = 10;

/// Where the parts of the certificate are.
pub(super) struct Made {
    pub(super) root: PathBuf,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// The certificate of a server that listens here, made if there is none that is valid.
pub(super) fn certificate(data: &Path, listen: SocketAddr, now: Timestamp) -> Result<Made, Failure> {
    let folder = data.join("tls");
    let made = Made {
        root: folder.join("root.pem"),
        certificate: folder.join("certificate.pem"),
        key: folder.join("key.pem"),
    };
    let (names, year) = (names(listen), year(now));
    let note = folder.join("names");
    if fs::read_to_string(&note).is_ok_and(|text| is_valid(&text, &names, year)) {
        return Ok(made);
    }
    let unwritable = |error: io::Error| Failure::io("write a certificate to", &folder, &error);
    let signed = sign(&names, year).map_err(|error| {
        let hint = "give a certificate with --tls-cert and --tls-key";
        Failure::new("tls", format!("cannot make a certificate: {error}"), hint)
    })?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(unwritable)?;
    let written = remove(&note)
        .and_then(|()| write(&made.root, &signed.root, 0o644))
        .and_then(|()| write(&made.certificate, &signed.certificate, 0o644))
        .and_then(|()| write(&made.key, &signed.key, 0o600))
        .and_then(|()| write(&note, &noted(&names, year + YEARS), 0o644));
    written.map_err(unwritable)?;
    Ok(made)
}

/// What the server is called: this machine, buckets below it, and the address if others can reach it. Many clients take no
/// wildcard directly below a top label, so buckets have names below `s3.localhost` too.
fn names(listen: SocketAddr) -> Vec<String> {
    let mut names: Vec<String> =
        ["localhost", "*.localhost", "s3.localhost", "*.s3.localhost", "127.0.0.1", "::1"]
            .map(str::to_owned)
            .into();
    let address = listen.ip().to_canonical().to_string();
    if !listen.ip().is_unspecified() && !names.contains(&address) {
        names.push(address);
    }
    names
}

fn year(now: Timestamp) -> i32 {
    let millis = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    // A certificate cannot tell later years.
    i32::from(moment.to_zoned(jiff::tz::TimeZone::UTC).year()).clamp(1970, 9_900)
}

/// The note about a certificate: its names, and the year in which it ends.
fn noted(names: &[String], end: i32) -> String {
    format!("{}\nuntil {end}\n", names.join("\n"))
}

fn is_valid(text: &str, names: &[String], year: i32) -> bool {
    let end = text.lines().last().and_then(|line| line.strip_prefix("until ")?.parse().ok());
    end.is_some_and(|end| text == noted(names, end) && year < end && end <= year + YEARS)
}

/// The parts of a certificate, in PEM.
struct Signed {
    root: String,
    certificate: String,
    key: String,
}

fn sign(names: &[String], year: i32) -> Result<Signed, rcgen::Error> {
    let (from, until) = (date_time_ymd(year - 1, 1, 1), date_time_ymd(year + YEARS, 1, 1));
    let mut root = CertificateParams::default();
    (root.not_before, root.not_after) = (from, until);
    root.distinguished_name.push(DnType::CommonName, "Anabranch on this machine");
    root.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    root.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let root_key = KeyPair::generate()?;

    let mut server = CertificateParams::new(names)?;
    (server.not_before, server.not_after) = (from, until);
    server.distinguished_name.push(DnType::CommonName, "anabranch");
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &Issuer::from_params(&root, &root_key))?;
    Ok(Signed {
        root: root.self_signed(&root_key)?.pem(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Writes a file that is new, so that nobody has had it open with other permissions.
fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    remove(path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const LISTEN: &str = "127.0.0.1:4566";

    fn at(year: u64) -> Timestamp {
        Timestamp::from_millis((year - 1970) * 31_557_600_000 + 86_400_000)
    }

    #[test]
    fn a_certificate_is_kept_until_it_is_not_valid() {
        let folder = tempfile::tempdir().unwrap();
        let root = |listen: &str, year| {
            let made = certificate(folder.path(), listen.parse().unwrap(), at(year)).unwrap();
            fs::read_to_string(made.root).unwrap()
        };
        let first = root(LISTEN, 2026);
        assert_eq!(root("[::1]:80", 2035), first, "it has this name too");
        let second = root("10.0.0.1:4566", 2026);
        assert_ne!(second, first, "it has another name");
        assert_eq!(root("10.0.0.1:4567", 2027), second);
        let third = root("10.0.0.1:4567", 2036);
        assert_ne!(third, second, "it is too old");
        assert_ne!(root("10.0.0.1:4567", 2000), third, "it is from the future");
        fs::remove_file(folder.path().join("tls/names")).unwrap();
        assert_ne!(root("10.0.0.1:4567", 2000), third, "it may not be whole");
    }

    #[test]
    fn nobody_else_can_read_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let made = certificate(folder.path(), LISTEN.parse().unwrap(), at(2026)).unwrap();
        assert_eq!(fs::metadata(&made.key).unwrap().permissions().mode() & 0o777, 0o600);
        let folder = folder.path().join("tls");
        assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
