//! A server that is measured: ours, a peer that somebody else wrote, or the stub that shows what the client can do.

use std::str::FromStr;

use super::connection::Service;

/// A peer of the command line: `NAME:SERVICES:URL`, with `durable` among the services if it keeps what it acknowledges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(super) name: String,
    pub(super) services: Vec<Service>,
    pub(super) durable: bool,
    /// `host:port`.
    pub(super) address: String,
}

impl Peer {
    /// A server of ours, with every service.
    pub(super) fn ours(url: &str) -> Peer {
        Peer {
            name: "anabranch".to_owned(),
            services: vec![Service::Kinesis, Service::Sqs, Service::DynamoDb],
            durable: true,
            address: address(url).to_owned(),
        }
    }
}

fn address(url: &str) -> &str {
    url.trim_start_matches("http://").trim_end_matches('/')
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Peer, String> {
        let mut parts = text.splitn(3, ':');
        let (Some(name), Some(words), Some(url)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("a peer is NAME:SERVICES:URL".to_owned());
        };
        if !url.starts_with("http://") {
            return Err(format!("{url} does not begin with http://"));
        }
        let (mut services, mut durable) = (Vec::new(), false);
        for word in words.split(',') {
            match Service::named(word) {
                Some(service) => services.push(service),
                None if word == "durable" => durable = true,
                None => return Err(format!("{word} is none of kinesis, sqs, dynamodb and durable")),
            }
        }
        Ok(Peer { name: name.to_owned(), services, durable, address: address(url).to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_told_by_a_word() {
        let peer: Peer = "moto:kinesis,sqs:http://127.0.0.1:5000/".parse().unwrap();
        assert_eq!((peer.name.as_str(), peer.address.as_str()), ("moto", "127.0.0.1:5000"));
        assert_eq!(peer.services, [Service::Kinesis, Service::Sqs]);
        assert!(!peer.durable);
        assert!("a:kinesis,durable:http://h:1".parse::<Peer>().unwrap().durable);
        for wrong in ["moto", "moto:kinesis", "moto:s3:http://h:1", "moto:sqs:h:1"] {
            assert!(wrong.parse::<Peer>().is_err(), "{wrong}");
        }
    }
}
