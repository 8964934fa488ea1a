// Checks the signature of a signed MCP bundle a second way, with the library that made
// it: the digest of what stands before the block, and the key's signature over the
// attributes as a SET. Prints the certificate's fingerprint.
import { readFileSync } from "node:fs";
import { createHash, createVerify } from "node:crypto";
import { createRequire } from "node:module";

const forge = createRequire(process.argv[2] + "/")("node-forge");
const file = readFileSync(process.argv[3]);
const at = file.lastIndexOf("MCPB_SIG_V1");
const length = file.readUInt32LE(at + 11);
const message = forge.pkcs7.messageFromAsn1(forge.asn1.fromDer(file.subarray(at + 15, at + 15 + length).toString("binary")));
const { authenticatedAttributes, signature } = message.rawCapture;
const set = forge.asn1.create(forge.asn1.Class.UNIVERSAL, forge.asn1.Type.SET, true, authenticatedAttributes);
const digest = authenticatedAttributes
  .map((a) => ({ oid: forge.asn1.derToOid(a.value[0].value), value: a.value[1].value[0].value }))
  .find((a) => a.oid === forge.pki.oids.messageDigest).value;
if (createHash("sha256").update(file.subarray(0, at)).digest("binary") !== digest) throw new Error("another archive");
const verify = createVerify("sha256");
verify.update(Buffer.from(forge.asn1.toDer(set).getBytes(), "binary"));
if (!verify.verify(forge.pki.certificateToPem(message.certificates[0]), Buffer.from(signature, "binary"))) throw new Error("another key");
const certificate = forge.asn1.toDer(forge.pki.certificateToAsn1(message.certificates[0])).getBytes();
console.log(createHash("sha256").update(certificate, "binary").digest("hex"));
