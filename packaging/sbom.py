"""A bill of materials as SPDX 2.3."""

import hashlib
import json
import re
from datetime import datetime, timezone

# How THIRD_PARTY.md says it -> SPDX expression.
SPDX_OF = {"LGPL-2.1": "LGPL-2.1-only", "LGPL-2.1 or later": "LGPL-2.1-or-later", "BSL-1.0": "BSL-1.0",
           "GPL-3.0 with the GCC runtime exception": "GPL-3.0-or-later WITH GCC-exception-3.1",
           "public domain": "NOASSERTION"}


def spdx_licence(stated):
    stated = SPDX_OF.get(stated, stated or "NOASSERTION")
    is_expression = re.fullmatch(r"[A-Za-z0-9.+-]+(-or-later WITH [A-Za-z0-9.-]+)?", stated)
    return stated if is_expression else "NOASSERTION"


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def package_entry(name, version, licence, locator):
    return {"SPDXID": spdx_id(name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": spdx_licence(licence),
            "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": locator}]}


def debian_entry(name, version, licence):
    return package_entry(name, version, licence, f"pkg:deb/debian/{name}@{version}?arch=amd64")


def npm_entries(lock):
    """What a lock file of npm pins, without tools that only build."""
    return [package_entry(path.rpartition("node_modules/")[2], entry["version"], entry.get("license", ""),
                          f"pkg:npm/{path.rpartition('node_modules/')[2]}@{entry['version']}")
            for path, entry in sorted(json.loads(lock)["packages"].items())
            if path and not entry.get("dev") and not entry.get("optional")]


def document(version, created, parts):
    """The whole file. `parts`: (entry, relation of Tessera to it) pairs; `created` in seconds since 1970."""
    tessera = package_entry("tessera", version, "Apache-2.0", f"pkg:generic/tessera@{version}")
    entries = [entry for entry, _ in parts]
    seal = hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"tessera-{version}", "documentNamespace": f"urn:tessera:{version}:{seal[:32]}",
        "creationInfo": {"created": datetime.fromtimestamp(created, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: tools/release"]},
        "packages": [tessera, *entries],
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": tessera["SPDXID"]},
            *({"spdxElementId": tessera["SPDXID"], "relationshipType": relation, "relatedSpdxElement": entry["SPDXID"]}
              for entry, relation in parts)]}
