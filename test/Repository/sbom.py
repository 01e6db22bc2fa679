"""Checks the software bill of materials: by the rules of SPDX 2.3 for what it has, and against what is linked.

usage: sbom.py DOCUMENT FILE…

Each shared library that a FILE (a tool, a library) needs is one of a package's, or the system's.
"""

import json
import pathlib
import re
import subprocess
import sys

LICENSES = {"Apache-2.0", "BSD-3-Clause", "MIT", "Zlib", "LGPL-3.0-or-later", "GPL-2.0-or-later", "Unicode-DFS-2016"}
EXCEPTIONS = {"LLVM-exception"}
RELATIONS = {"DESCRIBES", "CONTAINS", "DYNAMIC_LINK", "STATIC_LINK", "RUNTIME_DEPENDENCY_OF", "OPTIONAL_DEPENDENCY_OF", "TEST_DEPENDENCY_OF"}
ID = re.compile(r"SPDXRef-[A-Za-z0-9.-]+\Z")
PURL = re.compile(r"pkg:(deb/debian|pypi)/[a-z0-9.+-]+@[A-Za-z0-9.~%-]+(\?arch=[a-z0-9]+)?\Z")
# Libraries of one package, and of the project.
OF_PACKAGE = {"libc10.so": "libtorch_cpu.so", "libtorch.so": "libtorch_cpu.so"}
SYSTEM = ("libstdc++.so", "libm.so", "libresolv.so", "libgcc_s.so", "libc.so", "ld-linux", "libdl.so", "libpthread.so", "libclang_rt.")
OWN = ("libtprt.so", "libTPMLIRC.so")

problems = []


def expect(condition, text):
    if not condition:
        problems.append(text)


def check_license(expression, own, where):
    if expression == "NOASSERTION":
        return
    for part in expression.split(" OR "):
        name, _, exception = part.partition(" WITH ")
        expect(name in LICENSES or name in own, f"{where}: '{name}' is no known license")
        expect(not exception or exception in EXCEPTIONS, f"{where}: '{exception}' is no known exception")


def check_document(document):
    for name, value in (("spdxVersion", "SPDX-2.3"), ("dataLicense", "CC0-1.0"), ("SPDXID", "SPDXRef-DOCUMENT")):
        expect(document.get(name) == value, f"{name} is {document.get(name)!r}, expected {value!r}")
    expect(document.get("name"), "no name")
    expect(re.match(r"[a-z]+:[^#\s]+\Z", document.get("documentNamespace", "")), "documentNamespace is no URI without '#'")
    creation = document.get("creationInfo", {})
    expect(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z", creation.get("created", "")), "creationInfo.created is no time in UTC")
    expect(creation.get("creators") and all(re.match(r"(Tool|Person|Organization): \S", creator) for creator in creation["creators"]),
           "creationInfo.creators names nobody")
    own = set()
    for info in document.get("hasExtractedLicensingInfos", []):
        expect(re.match(r"LicenseRef-[A-Za-z0-9.-]+\Z", info.get("licenseId", "")), f"license {info} has no id")
        expect(info.get("extractedText"), f"license {info} has no text")
        own.add(info.get("licenseId"))

    ids = ["SPDXRef-DOCUMENT"]
    relations = document.get("relationships", [])
    optional = {relation["spdxElementId"] for relation in relations if relation["relationshipType"] == "OPTIONAL_DEPENDENCY_OF"}
    for package in document.get("packages", []):
        where = package.get("name", str(package))
        expect(package.get("name"), f"{where} has no name")
        expect(ID.match(package.get("SPDXID", "")), f"{where}: bad SPDXID {package.get('SPDXID')!r}")
        ids.append(package.get("SPDXID"))
        expect(re.match(r"https://\S+\Z|NOASSERTION\Z", package.get("downloadLocation", "")), f"{where}: bad downloadLocation")
        expect(package.get("filesAnalyzed") is False, f"{where}: filesAnalyzed must be false, for no files are listed")
        expect(package.get("copyrightText"), f"{where} has no copyrightText")
        for member in ("licenseConcluded", "licenseDeclared"):
            check_license(package.get(member, ""), own, where)
        version = package.get("versionInfo", "")
        expect(package["SPDXID"] in optional or re.match(r"\d+\.\d+", version), f"{where}: bad version {version!r}")
        for reference in package.get("externalRefs", []):
            expect((reference.get("referenceCategory"), reference.get("referenceType")) == ("PACKAGE-MANAGER", "purl"),
                   f"{where}: bad reference {reference}")
            expect(PURL.match(reference.get("referenceLocator", "")), f"{where}: bad package URL {reference.get('referenceLocator')!r}")
    for id in {id for id in ids if ids.count(id) > 1}:
        problems.append(f"{id} is given twice")

    related = set()
    for relation in relations:
        expect(relation.get("relationshipType") in RELATIONS, f"bad relationship {relation}")
        for member in ("spdxElementId", "relatedSpdxElement"):
            expect(relation.get(member) in ids, f"{relation}: {member} is nothing")
            related.add(relation.get(member))
    expect(sum(relation["relationshipType"] == "DESCRIBES" for relation in relations) == 1, "not one DESCRIBES")
    for id in set(ids) - related:
        problems.append(f"{id} is related to nothing")


def check_linked(document, files):
    """Returns how many libraries were found."""
    listed = {package["packageFileName"] for package in document["packages"] if "packageFileName" in package}
    linked = {relation["relatedSpdxElement"] for relation in document["relationships"] if relation["relationshipType"] == "DYNAMIC_LINK"}
    used = set()
    for file in files:
        dump = subprocess.run(["readelf", "-d", file], check=True, capture_output=True, text=True).stdout
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", dump):
            if library.startswith((*SYSTEM, *OWN)):
                continue
            name = library[:library.index(".so") + 3]
            name = OF_PACKAGE.get(name, name)
            expect(name in listed, f"'{pathlib.Path(file).name}' needs '{library}', which no package has")
            used.add(name)
    for package in document["packages"]:
        if package["SPDXID"] in linked:
            expect(package.get("packageFileName") in used, f"nothing is linked with {package['name']}")
    return len(used)


def main():
    document = json.loads(pathlib.Path(sys.argv[1]).read_text())
    check_document(document)
    used = check_linked(document, sys.argv[2:])
    for problem in problems:
        print(problem)
    print(f"{len(document['packages'])} packages, {used} libraries, {len(problems)} problems")
    sys.exit(1 if problems else 0)


main()
