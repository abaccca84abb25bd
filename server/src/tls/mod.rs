//! TLS on the listen address, with a certificate that the server makes for itself or one that it is given.
//!
//! The port stays one: the first byte of a connection tells TLS from plain HTTP. What is plain is answered to this machine
//! only, where the commands of `anabranch` speak it too; other machines are told to speak TLS.

mod made;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_model::Timestamp;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::failure::Failure;

/// What is offered to clients that can choose: HTTP/2 first.
const LANGUAGES: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The server makes one, and keeps it in its data directory.
    Made,
    /// Files in PEM: the certificate, with those that lead to its root behind it, and its key.
    Given { certificate: PathBuf, key: PathBuf },
}

/// TLS, ready to be spoken.
pub(crate) struct Tls {
    /// Speaks it.
    pub(crate) acceptor: TlsAcceptor,
    /// What clients have to be told to trust; none if a given certificate is trusted for other reasons.
    pub(crate) root: Option<PathBuf>,
}

impl Tls {
    /// Makes or reads the certificate for a server at this address.
    pub(crate) fn start(
        source: &Source,
        data: &Path,
        listen: SocketAddr,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        match source {
            Source::Made => {
                let made = made::certificate(data, listen, now)?;
                Ok(Tls { acceptor: acceptor(&made.certificate, &made.key)?, root: Some(made.root) })
            }
            Source::Given { certificate, key } => {
                Ok(Tls { acceptor: acceptor(certificate, key)?, root: None })
            }
        }
    }
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, Failure> {
    let unreadable = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::usage(
            format!("cannot use {} for TLS: {error}", path.display()),
            "give a certificate and its key as files in PEM, or --tls alone to have them made",
        )
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(certificate, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret));
    let mut config = config.map_err(|error| unreadable(certificate, &error))?;
    config.alpn_protocols = LANGUAGES.map(<[u8]>::to_vec).into();
    Ok(TlsAcceptor::from(Arc::new(config)))
}
