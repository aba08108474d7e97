//! The services that are registered: the same for all systems, each in its form.

use std::fmt::Write as _;

/// A service with its interfaces.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) locator: String,
    pub(crate) interfaces: Vec<Interface>,
}

/// The fields of an interface in the XML protocol.
#[derive(Debug, Clone)]
pub(crate) struct Interface {
    pub(crate) host: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) address: String,
    pub(crate) direction: &'static str,
    pub(crate) capacity: &'static str,
}

/// Returns `count` services, each with this many interfaces; different sets have different addresses.
pub(crate) fn services(set: usize, count: usize, interfaces: usize) -> Vec<Service> {
    (0..count)
        .map(|number| service(set, number, interfaces))
        .collect()
}

/// One service. Its addresses are consecutive, as those of a router or a measurement host.
pub(crate) fn service(set: usize, number: usize, interfaces: usize) -> Service {
    let host = format!("host{number}.set{set}.example.net");
    let interface = |at: usize| {
        // 2^32 addresses of IPv4 are enough for 16 sets of 2.6 million services of 100.
        let place = (set << 28) + number * interfaces + at;
        let [a, b, c, d] = (place as u32).to_be_bytes();
        Interface {
            host: host.clone(),
            name: format!("eth{at}"),
            description: format!("Interface eth{at} on {host}"),
            address: format!("{a}.{b}.{c}.{d}"),
            direction: if at.is_multiple_of(2) { "in" } else { "out" },
            capacity: "10000000000",
        }
    };
    Service {
        name: format!("service-{set}-{number}"),
        locator: format!("http://{host}:8080/axis/services/snmpMA"),
        interfaces: (0..interfaces).map(interface).collect(),
    }
}

impl Service {
    /// An address of the service that is neither its first nor its last.
    pub(crate) fn middle_address(&self) -> String {
        self.interfaces[self.interfaces.len() / 2].address.clone()
    }

    /// The service as a record of the simple lookup service.
    pub(crate) fn json(&self) -> String {
        let list = |of: fn(&Interface) -> &str| {
            let texts: Vec<String> = self
                .interfaces
                .iter()
                .map(|interface| format!("\"{}\"", of(interface)))
                .collect();
            texts.join(",")
        };
        format!(
            "{{\"type\":[\"service\"],\"service-name\":[\"{}\"],\"service-locator\":[\"{}\"],\
             \"host-name\":[\"{}\"],\"interface-name\":[{}],\"interface-description\":[{}],\
             \"interface-addresses\":[{}],\"interface-direction\":[{}],\"interface-capacity\":[{}]}}",
            self.name,
            self.locator,
            self.interfaces[0].host,
            list(|interface| &interface.name),
            list(|interface| &interface.description),
            list(|interface| &interface.address),
            list(|interface| interface.direction),
            list(|interface| interface.capacity),
        )
    }

    /// The service as blocks of metadata of the XML protocol.
    pub(crate) fn blocks(&self) -> String {
        let mut out = String::with_capacity(700 * self.interfaces.len());
        for (at, interface) in self.interfaces.iter().enumerate() {
            let Interface {
                host,
                name,
                description,
                address,
                direction,
                capacity,
            } = interface;
            let _ = write!(
                out,
                "<nmwg:metadata id=\"meta{at}\"><netutil:subject id=\"subj{at}\" \
                 xmlns:netutil=\"http://ggf.org/ns/nmwg/characteristic/utilization/2.0/\">\
                 <nmwgt:interface xmlns:nmwgt=\"http://ggf.org/ns/nmwg/topology/2.0/\">\
                 <nmwgt:hostName>{host}</nmwgt:hostName><nmwgt:ifName>{name}</nmwgt:ifName>\
                 <nmwgt:ifDescription>{description}</nmwgt:ifDescription>\
                 <nmwgt:ifAddress type=\"ipv4\">{address}</nmwgt:ifAddress>\
                 <nmwgt:direction>{direction}</nmwgt:direction>\
                 <nmwgt:capacity>{capacity}</nmwgt:capacity></nmwgt:interface></netutil:subject>\
                 <nmwg:eventType>http://ggf.org/ns/nmwg/characteristic/utilization/2.0\
                 </nmwg:eventType></nmwg:metadata>"
            );
        }
        out
    }

    /// The service's own part of the XML protocol's metadata.
    pub(crate) fn subject(&self) -> String {
        format!(
            "<perfsonar:subject id=\"commonParameters\" \
             xmlns:perfsonar=\"http://ggf.org/ns/nmwg/tools/org/perfsonar/1.0/\">\
             <psservice:service id=\"serviceParameters\" \
             xmlns:psservice=\"http://ggf.org/ns/nmwg/tools/org/perfsonar/service/1.0/\">\
             <psservice:serviceName>{}</psservice:serviceName>\
             <psservice:accessPoint>{}</psservice:accessPoint>\
             <psservice:serviceType>MA</psservice:serviceType></psservice:service>\
             </perfsonar:subject>",
            self.name, self.locator
        )
    }
}
