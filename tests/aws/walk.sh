#!/usr/bin/env bash
# What an operator runs once on a real account: deploys, checks, makes an alarm ring, lets a first deployment of prod
# fail, deletes and deploys again, asks what it cost, and removes everything. It takes about half an hour.
#
#   tests/aws/walk.sh STACK
#
# STACK and STACK-prod must not exist. It needs the SAM CLI, cargo-lambda, the AWS CLI, credentials and a region.
#
# With AWS_ENDPOINT_URL it walks an emulator that has deployed STACK already, at API_URL, and names each step that it does not
# run. The step fresh-clone does so.
set -euo pipefail
cd "$(dirname "$0")/../.."

[[ $# == 1 && $1 != -* ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
stack=$1 began=$(date -u +%F) kept=()
program=${PROGRAM:-cargo run -q --}
export AWS_PAGER=""

step() { echo "== $*"; }
# Whether the real account has to do what follows; an emulator does not, for the given reason.
real() {
  [[ -z ${AWS_ENDPOINT_URL:-} ]] || { echo "not run: $*"; return 1; }
}
output() {
  aws cloudformation describe-stacks --stack-name "$stack" --query "Stacks[0].Outputs[?OutputKey=='$1'].OutputValue" --output text
}
resource() {
  aws cloudformation describe-stack-resource --stack-name "$stack" --logical-resource-id "$1" \
    --query StackResourceDetail.PhysicalResourceId --output text
}
# Version 1 of the AWS CLI overlooks the variable for this service.
sqs() { aws sqs "$@" ${AWS_ENDPOINT_URL:+--endpoint-url "$AWS_ENDPOINT_URL"}; }
deploy() {
  sam deploy --stack-name "$1" --resolve-s3 --no-confirm-changeset --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND \
    --parameter-overrides TableMaxReadUnits=500 TableMaxWriteUnits=200 "${@:2}"
}
# Deletes the stack, and notes what outlives it.
delete() {
  local name
  for name in Table Bucket SecretKey; do kept+=("$name $(resource "$name")"); done
  aws cloudformation delete-stack --stack-name "$stack"
  aws cloudformation wait stack-delete-complete --stack-name "$stack"
}
# Removes an object of each version, then the bucket.
remove_bucket() {
  local found
  while found=$(aws s3api list-object-versions --bucket "$1" --max-items 500 --output json \
    --query '{Objects: [Versions, DeleteMarkers][].{Key: Key, VersionId: VersionId}}') && [[ $found == *VersionId* ]]; do
    aws s3api delete-objects --bucket "$1" --delete "$found" >/dev/null
  done
  aws s3api delete-bucket --bucket "$1"
}

step "deploy"
if real "sam deploy: tests/stack deploys with the transform of SAM"; then
  sam build
  topic=$(aws sns create-topic --name "$stack-walk" --query TopicArn --output text)
  deploy "$stack" Stage=dev "AlarmTopicArn=$topic"
fi
url=${API_URL:-$(output ApiUrl)}
key=$(bash -c "$(output FirstKeyCommand)")

step "check"
$program check "$url" --key "$key"

step "an alarm rings"
letters=$(resource WorkDeadLetters)
sqs send-message --queue-url "$letters" --message-body "a letter of the walk" >/dev/null
alarm=$(aws cloudwatch describe-alarms --output text \
  --query "MetricAlarms[?contains(AlarmName, '$stack') && contains(AlarmName, 'DeadLettersAlarm')].AlarmName")
[[ -n $alarm ]]
if real "$alarm rings within ten minutes: the emulator measures nothing"; then
  for _ in $(seq 60); do
    state=$(aws cloudwatch describe-alarms --alarm-names "$alarm" --query 'MetricAlarms[0].StateValue' --output text)
    [[ $state != ALARM ]] || break
    sleep 10
  done
  echo "$alarm: $state"
  [[ $state == ALARM ]]
fi
sqs purge-queue --queue-url "$letters"

step "a first deployment of prod fails, and leaves nothing"
if real "tests/stack has a case of it"; then
  deploy "$stack-prod" Stage=prod 'Settings={"A2A_TASK_TLT":"7d"}' && { echo "FAILED: refused settings are deployed"; exit 1; }
  left=$(aws dynamodb list-tables --query "TableNames[?starts_with(@, '$stack-prod-')]" --output text)
  [[ -z $left ]] || { echo "FAILED: $left is left"; exit 1; }
  aws cloudformation delete-stack --stack-name "$stack-prod"
  aws cloudformation wait stack-delete-complete --stack-name "$stack-prod"
fi

step "delete, and deploy again"
delete
if real "sam deploy, as above"; then
  deploy "$stack" Stage=dev "AlarmTopicArn=$topic"
  curl --fail --silent --show-error "$(output CardUrl)" >/dev/null
  delete
fi

step "what it cost"
if real "an emulator costs nothing"; then
  cost="aws ce get-cost-and-usage --granularity DAILY --metrics UnblendedCost --group-by Type=DIMENSION,Key=SERVICE
    --time-period Start=$began,End=$(date -u -d tomorrow +%F)"
  $cost --query 'ResultsByTime[].Groups[].[Keys[0], Metrics.UnblendedCost.Amount]' --output text
  echo "The bill of a day is complete after a day. Then, of the whole account:" $cost
fi

step "clean up"
for one in "${kept[@]}"; do
  read -r kind name <<<"$one"
  case $kind in
    Table) aws dynamodb delete-table --table-name "$name" >/dev/null ;;
    Bucket) remove_bucket "$name" ;;
    SecretKey) aws secretsmanager delete-secret --secret-id "$name" --force-delete-without-recovery >/dev/null ;;
  esac
  echo "removed $name"
done
if real "there is no topic of the walk"; then aws sns delete-topic --topic-arn "$topic"; fi
