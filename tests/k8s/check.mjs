// check.mjs FOLDER: whether the manifests there are what the Kubernetes API takes, and hang together. Each document becomes
// a literal of the type that kubernetes-types has for it, which is generated from the API's schema: TypeScript refuses a field
// that the type does not have, one that is missing, and a value of another type. Then the same with one fault in each of a list
// of copies, all of which must be refused. Prints "ok - …" and "FAIL - …"; status 1 when one failed.
import fs from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import ts from "typescript";
import yaml from "yaml";

const folder = process.argv[2];
const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const types = {
    "v1 Namespace": "kubernetes-types/core/v1",
    "v1 Secret": "kubernetes-types/core/v1",
    "v1 Service": "kubernetes-types/core/v1",
    "apps/v1 Deployment": "kubernetes-types/apps/v1",
    "networking.k8s.io/v1 NetworkPolicy": "kubernetes-types/networking/v1",
    "extensions.agents.x-k8s.io/v1beta1 SandboxTemplate": "./agent-sandbox",
    "extensions.agents.x-k8s.io/v1beta1 SandboxWarmPool": "./agent-sandbox",
};
let failed = 0;

function report(good, text, why) {
    console.log(`${good ? "ok" : "FAIL"} - ${text}`);
    if (!good) {
        failed++;
        if (why) console.log(why);
    }
}

const read = (name) =>
    yaml.parseAllDocuments(fs.readFileSync(path.join(folder, name), "utf8")).map((document) => {
        if (document.errors.length) throw document.errors[0];
        return document.toJS();
    });

// The manifest as a program that compiles if it is right. Kubernetes' own types leave the outermost keys optional.
function program(object) {
    const module = types[`${object.apiVersion} ${object.kind}`];
    if (!module) return `const unknown: never = ${JSON.stringify(`${object.apiVersion} ${object.kind}`)};`;
    const wanted = ["apiVersion", "kind", "metadata", ...("spec" in object ? ["spec"] : [])];
    return `import type { ${object.kind} as T } from "${module}";
type Whole = Omit<T, ${wanted.map((k) => `"${k}"`).join("|")}> & { ${wanted.map((k) => `${k}: NonNullable<T["${k}"]>`).join("; ")} };
export const manifest: Whole = ${JSON.stringify(object, null, 1)};
`;
}

// faults(MAP): for each name of a program its first fault, or nothing. All are compiled at once.
function faults(sources) {
    const options = { strict: true, noEmit: true, skipLibCheck: true, types: [], target: ts.ScriptTarget.ES2022,
        module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler };
    const host = ts.createCompilerHost(options);
    const { getSourceFile, fileExists } = host;
    host.fileExists = (name) => sources.has(path.basename(name)) || fileExists(name);
    host.getSourceFile = (name, ...rest) => sources.has(path.basename(name))
        ? ts.createSourceFile(name, sources.get(path.basename(name)), ts.ScriptTarget.ES2022)
        : getSourceFile(name, ...rest);
    const all = ts.createProgram([...sources.keys()].map((name) => path.join(here, name)), options, host);
    const broken = [...all.getOptionsDiagnostics(), ...all.getGlobalDiagnostics()];
    if (broken.length) throw new Error(ts.flattenDiagnosticMessageText(broken[0].messageText, "\n"));
    const found = new Map();
    for (const name of sources.keys()) {
        const file = all.getSourceFile(path.join(here, name));
        const first = [...all.getSyntacticDiagnostics(file), ...all.getSemanticDiagnostics(file)][0];
        found.set(name, first && ts.flattenDiagnosticMessageText(first.messageText, "\n"));
    }
    return found;
}

const kustomization = read("kustomization.yaml")[0];
const files = [...kustomization.resources, "agent-sandbox/warm-pool.yaml"];
const manifests = files.flatMap((file) => read(file).map((object) => ({ file, object })));
const pick = (kind) => manifests.find(({ object }) => object.kind === kind)?.object;
const container = (object) => (object.spec.podTemplate ?? object.spec.template).spec.containers[0];

// [what is wrong, in which kind, how it is made]
const wrong = [
    ["a capability list with another name", "Deployment", (o) => { container(o).securityContext.capabilities.dropp = ["ALL"]; }],
    ["a count in quotes", "Deployment", (o) => { o.spec.replicas = "1"; }],
    ["a container without a name", "Deployment", (o) => { delete container(o).name; }],
    ["a mount without its path", "Deployment", (o) => { delete container(o).volumeMounts[0].mountPath; }],
    ["a volume of no kind that there is", "Deployment", (o) => { o.spec.template.spec.volumes[2].emptydir = {}; }],
    ["no selector", "Deployment", (o) => { delete o.spec.selector; }],
    ["another version of the API", "Deployment", (o) => { o.apiVersion = "apps/v1beta2"; }],
    ["a port with another name", "Service", (o) => { o.spec.ports[0].targetport = 2222; }],
    ["a key that is a list", "Secret", (o) => { o.stringData.authorized_keys = ["one"]; }],
    ["egress beside spec", "NetworkPolicy", (o) => { o.egress = []; }],
    ["a selector that is a list", "NetworkPolicy", (o) => { o.spec.ingress[0].from[0].podSelector = ["one"]; }],
    ["a pod field in the wrong place", "SandboxTemplate", (o) => { o.spec.containers = []; }],
    ["a pod with a wrong field", "SandboxTemplate", (o) => { container(o).securityContext.readOnlyRootFileSystem = true; }],
    ["a policy that there is not", "SandboxTemplate", (o) => { o.spec.networkPolicyManagement = "None"; }],
    ["policyTypes, which the controller sets", "SandboxTemplate", (o) => { o.spec.networkPolicy.policyTypes = ["Egress"]; }],
    ["the reference of an older version", "SandboxWarmPool", (o) => {
        o.spec.templateRef = o.spec.sandboxTemplateRef;
        delete o.spec.sandboxTemplateRef;
    }],
];

const sources = new Map();
manifests.forEach(({ object }, i) => sources.set(`right-${i}.ts`, program(object)));
wrong.forEach(([, kind, spoil], i) => {
    const object = structuredClone(pick(kind));
    spoil(object);
    sources.set(`wrong-${i}.ts`, program(object));
});
const found = faults(sources);
manifests.forEach(({ file, object }, i) =>
    report(!found.get(`right-${i}.ts`), `${file}: ${object.kind} is what the API takes`, found.get(`right-${i}.ts`)));
wrong.forEach(([what, kind], i) => report(found.get(`wrong-${i}.ts`), `${kind}: ${what} is refused`));

// --- what the API takes and is wrong all the same ------------------------------------------------------------

const [deployment, service, policy, secret] = ["Deployment", "Service", "NetworkPolicy", "Secret"].map(pick);
const [template, pool] = ["SandboxTemplate", "SandboxWarmPool"].map(pick);
const pod = deployment.spec.template;
const labels = pod.metadata.labels;
const matches = (selector, of) => Object.entries(selector).every(([key, value]) => of[key] === value);
const FIVE = ["AUDIT_WRITE", "CHOWN", "SETGID", "SETUID", "SYS_CHROOT"];

report([deployment.spec.selector.matchLabels, service.spec.selector, policy.spec.podSelector.matchLabels]
    .every((selector) => Object.keys(selector).length && matches(selector, labels)), "selectors find the pod");
report(!matches(service.spec.selector, template.spec.podTemplate.metadata.labels), "the Service does not find warm sandboxes");
report(service.spec.ports.length === 1 && service.spec.ports[0].port === 22 &&
    container(deployment).ports.find(({ name }) => name === service.spec.ports[0].targetPort)?.containerPort === 2222,
    "the Service leads from 22 to 2222");
report(isDeepStrictEqual(policy.spec.policyTypes, ["Ingress", "Egress"]) && isDeepStrictEqual(policy.spec.egress, []) &&
    isDeepStrictEqual(template.spec.networkPolicy.egress, []), "egress is denied");
report(isDeepStrictEqual(policy.spec.ingress, template.spec.networkPolicy.ingress), "both let the same in");
report(isDeepStrictEqual(container(deployment).securityContext.capabilities, { drop: ["ALL"], add: FIVE }) &&
    container(deployment).securityContext.readOnlyRootFilesystem === true &&
    container(deployment).securityContext.allowPrivilegeEscalation === false, "five capabilities and a read-only root");
report(isDeepStrictEqual(template.spec.podTemplate.spec, pod.spec), "the template's pod is the Deployment's");
report(pool.spec.sandboxTemplateRef.name === template.metadata.name &&
    pool.metadata.namespace === template.metadata.namespace &&
    template.metadata.namespace === kustomization.namespace, "the pool finds its template");
report(pod.spec.volumes.some((volume) => volume.secret?.secretName === secret.metadata.name) &&
    container(deployment).volumeMounts.every(({ name }) => pod.spec.volumes.some((volume) => volume.name === name)),
    "volumes and Secrets have the names by which they are mounted");
report(fs.readdirSync(folder).filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml")
    .every((name) => kustomization.resources.includes(name)), "the kustomization leaves no manifest out");
process.exit(failed ? 1 : 0);
