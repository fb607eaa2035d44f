//! Which request do the parameters of a load balancing call make? One reader for each action.

use crate::cloud::model::{
    ClassicInstance, ClassicInstances, ClassicListener, ClassicName, CreateClassicLoadBalancer,
    CreateListener, CreateLoadBalancer, CreateTargetGroup, DescribeClassicLoadBalancers,
    DescribeLoadBalancers, DescribeTargetGroups, Ec2Error, ElbRequest, Elbv2Request,
    LoadBalancerArn, Tag, TargetDescription, TargetGroupArn, Targets,
};

use super::{query::Parameters, requests::unknown_action};

pub fn read_elb_request(action: &str, parameters: &mut Parameters) -> Result<ElbRequest, Ec2Error> {
    Ok(match action {
        "CreateLoadBalancer" => ElbRequest::CreateLoadBalancer(CreateClassicLoadBalancer {
            load_balancer_name: parameters.required_string("LoadBalancerName")?,
            listeners: items(parameters, "Listeners", classic_listener)?,
            availability_zones: parameters.member_strings("AvailabilityZones")?,
            subnets: parameters.member_strings("Subnets")?,
            security_groups: parameters.member_strings("SecurityGroups")?,
            scheme: parameters.string("Scheme"),
            tags: items(parameters, "Tags", tag)?,
        }),
        "DeleteLoadBalancer" => ElbRequest::DeleteLoadBalancer(ClassicName {
            load_balancer_name: parameters.required_string("LoadBalancerName")?,
        }),
        "DescribeLoadBalancers" => {
            ElbRequest::DescribeLoadBalancers(DescribeClassicLoadBalancers {
                load_balancer_names: parameters.member_strings("LoadBalancerNames")?,
                marker: parameters.string("Marker"),
                page_size: parameters.integer("PageSize")?,
            })
        }
        "RegisterInstancesWithLoadBalancer" => {
            ElbRequest::RegisterInstancesWithLoadBalancer(classic_instances(parameters)?)
        }
        "DeregisterInstancesFromLoadBalancer" => {
            ElbRequest::DeregisterInstancesFromLoadBalancer(classic_instances(parameters)?)
        }
        "DescribeInstanceHealth" => {
            ElbRequest::DescribeInstanceHealth(classic_instances(parameters)?)
        }
        other => return Err(unknown_action(other)),
    })
}

pub fn read_elbv2_request(
    action: &str,
    parameters: &mut Parameters,
) -> Result<Elbv2Request, Ec2Error> {
    Ok(match action {
        "CreateLoadBalancer" => Elbv2Request::CreateLoadBalancer(CreateLoadBalancer {
            name: parameters.required_string("Name")?,
            r#type: parameters.string("Type"),
            subnets: subnets(parameters)?,
            security_groups: parameters.member_strings("SecurityGroups")?,
            scheme: parameters.string("Scheme"),
            ip_address_type: parameters.string("IpAddressType"),
            tags: items(parameters, "Tags", tag)?,
        }),
        "DeleteLoadBalancer" => Elbv2Request::DeleteLoadBalancer(LoadBalancerArn {
            load_balancer_arn: parameters.required_string("LoadBalancerArn")?,
        }),
        "DescribeLoadBalancers" => Elbv2Request::DescribeLoadBalancers(DescribeLoadBalancers {
            load_balancer_arns: parameters.member_strings("LoadBalancerArns")?,
            names: parameters.member_strings("Names")?,
            marker: parameters.string("Marker"),
            page_size: parameters.integer("PageSize")?,
        }),
        "CreateTargetGroup" => create_target_group(parameters)?,
        "DeleteTargetGroup" => Elbv2Request::DeleteTargetGroup(TargetGroupArn {
            target_group_arn: parameters.required_string("TargetGroupArn")?,
        }),
        "DescribeTargetGroups" => Elbv2Request::DescribeTargetGroups(DescribeTargetGroups {
            load_balancer_arn: parameters.string("LoadBalancerArn"),
            target_group_arns: parameters.member_strings("TargetGroupArns")?,
            names: parameters.member_strings("Names")?,
            marker: parameters.string("Marker"),
            page_size: parameters.integer("PageSize")?,
        }),
        "CreateListener" => Elbv2Request::CreateListener(CreateListener {
            load_balancer_arn: parameters.required_string("LoadBalancerArn")?,
            protocol: parameters.string("Protocol"),
            port: parameters.integer("Port")?,
            target_group_arns: forwarded_groups(parameters)?,
        }),
        "RegisterTargets" => Elbv2Request::RegisterTargets(targets(parameters)?),
        "DeregisterTargets" => Elbv2Request::DeregisterTargets(targets(parameters)?),
        "DescribeTargetHealth" => {
            // Anomalies are not simulated, so including them adds nothing.
            parameters.member_strings("Include")?;
            Elbv2Request::DescribeTargetHealth(targets(parameters)?)
        }
        other => return Err(unknown_action(other)),
    })
}

fn items<T>(
    parameters: &mut Parameters,
    name: &str,
    read: impl Fn(&mut Parameters) -> Result<T, Ec2Error>,
) -> Result<Vec<T>, Ec2Error> {
    parameters
        .members(name)?
        .into_iter()
        .map(|mut item| {
            let value = read(&mut item)?;
            item.finish()?;
            Ok(value)
        })
        .collect()
}

fn required_integer(parameters: &mut Parameters, name: &str) -> Result<i64, Ec2Error> {
    parameters.integer(name)?.ok_or_else(|| Ec2Error::missing_parameter(name))
}

fn tag(item: &mut Parameters) -> Result<Tag, Ec2Error> {
    Ok(Tag { key: item.required_string("Key")?, value: item.string("Value").unwrap_or_default() })
}

fn classic_listener(item: &mut Parameters) -> Result<ClassicListener, Ec2Error> {
    item.string("SSLCertificateId");
    Ok(ClassicListener {
        protocol: item.required_string("Protocol")?,
        load_balancer_port: required_integer(item, "LoadBalancerPort")?,
        instance_protocol: item.string("InstanceProtocol"),
        instance_port: required_integer(item, "InstancePort")?,
    })
}

fn classic_instances(parameters: &mut Parameters) -> Result<ClassicInstances, Ec2Error> {
    Ok(ClassicInstances {
        load_balancer_name: parameters.required_string("LoadBalancerName")?,
        instances: items(parameters, "Instances", |item| {
            Ok(ClassicInstance { instance_id: item.required_string("InstanceId")? })
        })?,
    })
}

/// Subnets come as a list of ids, or with addresses of their own, which are not simulated.
fn subnets(parameters: &mut Parameters) -> Result<Vec<String>, Ec2Error> {
    let mut subnets = parameters.member_strings("Subnets")?;
    subnets.extend(items(parameters, "SubnetMappings", |item| item.required_string("SubnetId"))?);
    Ok(subnets)
}

fn create_target_group(parameters: &mut Parameters) -> Result<Elbv2Request, Ec2Error> {
    let request = CreateTargetGroup {
        name: parameters.required_string("Name")?,
        protocol: parameters.string("Protocol"),
        port: parameters.integer("Port")?,
        vpc_id: parameters.string("VpcId"),
        target_type: parameters.string("TargetType"),
        ip_address_type: parameters.string("IpAddressType"),
        health_check_protocol: parameters.string("HealthCheckProtocol"),
        health_check_port: parameters.string("HealthCheckPort"),
        health_check_path: parameters.string("HealthCheckPath"),
        tags: items(parameters, "Tags", tag)?,
    };
    // When health is decided is the simulation's own choice.
    for ignored in [
        "HealthCheckIntervalSeconds",
        "HealthCheckTimeoutSeconds",
        "HealthyThresholdCount",
        "UnhealthyThresholdCount",
    ] {
        parameters.integer(ignored)?;
    }
    parameters.boolean("HealthCheckEnabled")?;
    Ok(Elbv2Request::CreateTargetGroup(request))
}

/// Returns the groups of the default actions, in either of the two forms that a forward has.
fn forwarded_groups(parameters: &mut Parameters) -> Result<Vec<String>, Ec2Error> {
    let actions = items(parameters, "DefaultActions", |action| {
        let kind = action.required_string("Type")?;
        if kind != "forward" {
            return Err(Ec2Error::new(
                "InvalidLoadBalancerAction",
                format!("The simulated cloud has no action of type {kind}"),
            ));
        }
        action.integer("Order")?;
        let mut arns: Vec<String> = action.string("TargetGroupArn").into_iter().collect();
        if let Some(mut forward) = action.structure("ForwardConfig") {
            arns.extend(items(&mut forward, "TargetGroups", |group| {
                group.integer("Weight")?;
                group.required_string("TargetGroupArn")
            })?);
            forward.structure("TargetGroupStickinessConfig");
            forward.finish()?;
        }
        arns.dedup();
        Ok(arns)
    })?;
    Ok(actions.into_iter().flatten().collect())
}

fn targets(parameters: &mut Parameters) -> Result<Targets, Ec2Error> {
    Ok(Targets {
        target_group_arn: parameters.required_string("TargetGroupArn")?,
        targets: items(parameters, "Targets", |item| {
            Ok(TargetDescription {
                id: item.required_string("Id")?,
                port: item.integer("Port")?,
                availability_zone: item.string("AvailabilityZone"),
            })
        })?,
    })
}
