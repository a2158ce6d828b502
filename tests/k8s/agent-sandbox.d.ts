// What kubernetes-sigs/agent-sandbox (extensions.agents.x-k8s.io/v1beta1, release 0.5.6) takes in the two resources of
// k8s/agent-sandbox. No package has its schemas; the parts that are Kubernetes' own come from kubernetes-types.
import type { PersistentVolumeClaimSpec, PodSpec } from "kubernetes-types/core/v1";
import type { ObjectMeta } from "kubernetes-types/meta/v1";
import type { NetworkPolicyEgressRule, NetworkPolicyIngressRule } from "kubernetes-types/networking/v1";

interface Marks {
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
}

export interface SandboxTemplate {
    apiVersion: "extensions.agents.x-k8s.io/v1beta1";
    kind: "SandboxTemplate";
    metadata: ObjectMeta;
    spec: {
        podTemplate: { metadata?: Marks; spec: PodSpec };
        service?: boolean;
        volumeClaimTemplates?: { metadata: Marks & { name?: string }; spec: PersistentVolumeClaimSpec }[];
        networkPolicy?: { ingress?: NetworkPolicyIngressRule[]; egress?: NetworkPolicyEgressRule[] };
        networkPolicyManagement?: "Managed" | "Unmanaged";
        envVarsInjectionPolicy?: "Allowed" | "Overrides" | "Disallowed";
        volumeClaimTemplatesPolicy?: "Allowed" | "Overrides" | "Disallowed";
    };
}

export interface SandboxWarmPool {
    apiVersion: "extensions.agents.x-k8s.io/v1beta1";
    kind: "SandboxWarmPool";
    metadata: ObjectMeta;
    spec: {
        replicas?: number;
        sandboxTemplateRef: { name: string };
        updateStrategy?: { type?: "Recreate" | "OnReplenish" };
    };
}
